// A question, an answer, and whether its number is right.
import { defineRecipe, scoreNumber } from "rollscope/recipe";

/** A row of train.jsonl and heldOut.jsonl. */
interface Question {
  readonly question: string;
  readonly answer: number;
}

export default defineRecipe<Question>({
  // What the model is asked. Call `agent.chat` as often as the task needs; every token is recorded.
  async rollout(task, agent) {
    await agent.chat({
      messages: [
        { role: "system", content: "You are a calculator." },
        { role: "user", content: task.payload.question },
      ],
    });
  },

  // How good the trajectory is. Only `score` is learned from; the rest of the breakdown is shown beside it.
  evaluate({ task, text }) {
    const correct = scoreNumber(text, task.payload.answer);
    const short = text.length <= 20 ? 1 : 0;
    return { score: correct, breakdown: { correct, short } };
  },
});
