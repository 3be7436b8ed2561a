// What controls that both pages use say, in both languages.
import { language } from "./text.ts";

const en = {
  table: "Table",
  showTable: (title: string) => `${title}: show as a table`,
  showChart: (title: string) => `${title}: show as a chart`,
  step: "Step",
  stepAxis: "step",
  atStep: (step: string) => `step ${step}`,
  stepRange: (from: string, to: string) => `steps ${from}–${to}`,
  latest: "latest",
  notFinite: (count: string) => `${count} not finite`,
  oneNotFinite: "not finite",
  notFiniteHint: "Values that are NaN or infinite; marked at the foot of the chart.",
  notPositive: (count: string) => `${count} not above 0`,
  notPositiveHint: "A logarithmic axis cannot show them. The table and the linear axis do.",
  noValues: "No values yet.",
  noNumber: "no value",
  summary: (title: string, series: string, from: string, to: string, min: string, max: string) =>
    `${title}: ${series}; steps ${from} to ${to}; values from ${min} to ${max}.`,
  seriesCount: (count: number) => (count === 1 ? "one line" : `${count} lines`),
  keys: "Left and right: step. Enter: trajectories of the step. Plus, minus: zoom. Shift with left, right: pan. 0: whole run.",
};
const zh: typeof en = {
  table: "表格",
  showTable: (title) => `${title}：以表格显示`,
  showChart: (title) => `${title}：以图表显示`,
  step: "步",
  stepAxis: "步",
  atStep: (step) => `第 ${step} 步`,
  stepRange: (from, to) => `第 ${from}–${to} 步`,
  latest: "最新",
  notFinite: (count) => `${count} 个非有限值`,
  oneNotFinite: "非有限",
  notFiniteHint: "NaN 或无穷大的值；标在图表底部。",
  notPositive: (count) => `${count} 个不大于 0`,
  notPositiveHint: "对数轴无法显示它们；表格和线性轴可以。",
  noValues: "还没有数值。",
  noNumber: "无数值",
  summary: (title, series, from, to, min, max) =>
    `${title}：${series}；第 ${from} 到 ${to} 步；数值从 ${min} 到 ${max}。`,
  seriesCount: (count) => `${count} 条线`,
  keys: "左右键：移动一步。回车：该步的轨迹。加减号：缩放。Shift 加左右键：平移。0：整个运行。",
};

export const sharedWords = () => (language.value === "zh-cn" ? zh : en);
