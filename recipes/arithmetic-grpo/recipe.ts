// Teaches a small model to add. One question, one answer; the answer is right when its number is.
import { defineRecipe, scoreNumber } from "rollscope/recipe";

interface Addition {
  readonly a: number;
  readonly b: number;
}

export default defineRecipe<Addition, void>({
  async rollout(task, agent) {
    const { a, b } = task.payload;
    // Short on purpose: the base model answers this with an equation and stops, and a step computes fewer tokens.
    await agent.chat({
      messages: [
        { role: "system", content: "You are a calculator." },
        { role: "user", content: `${a} + ${b} =` },
      ],
    });
  },

  evaluate({ task, text }) {
    const { a, b } = task.payload;
    // The number after the last "=", or the last number: the one rule by which base and trained model are judged.
    const correct = scoreNumber(text, a + b);
    // Shown beside it and not rewarded: the answer is the equation, or its number, and nothing else.
    const format = /^(\d+ \+ \d+ = )?\d+\.?$/.test(text.trim()) ? 1 : 0;
    return { score: correct, breakdown: { correct, format } };
  },
});
