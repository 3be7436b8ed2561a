import { defineRecipe, scoreExactMatch } from "rollscope/recipe";

/** A row of train.jsonl. */
interface Row {
  readonly prompt: string;
  readonly expected: string;
}

export default defineRecipe<Row>({
  async rollout(task, agent) {
    await agent.chat({ messages: [{ role: "user", content: task.payload.prompt }] });
  },

  evaluate({ task, text }) {
    return scoreExactMatch(text, task.payload.expected, { ignoreCase: true });
  },
});
