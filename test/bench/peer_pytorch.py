"""The peer of `npm run bench`: PyTorch and transformers doing the same work on the same weights.

Reads one JSON command a line on standard input and answers with one JSON line; it must do nothing between
commands, so that the bench can interleave it with the engine in one process group.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM


class Peer:
    """A model, its optimizer, and one method a command."""

    def __init__(self, folder: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-6)

    def train(self, rows: list[list[int]], wanted_from: int, micro_rows: int) -> dict[str, Any]:
        """One optimizer step on −Σ logp of the tokens from `wanted_from` on; only their logits are computed."""
        began = time.perf_counter()
        ids = torch.tensor(rows)
        total = 0.0
        for chunk in ids.split(micro_rows):
            hidden = self.model.model(chunk, use_cache=False).last_hidden_state
            logits = self.model.lm_head(hidden[:, wanted_from - 1 : -1])
            targets = chunk[:, wanted_from:]
            loss = torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), reduction="sum"
            )
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        return {"seconds": time.perf_counter() - began, "loss": total}

    def generate(self, prompts: list[list[int]], new_tokens: int) -> dict[str, Any]:
        """Samples `new_tokens` for every prompt in one batch."""
        began = time.perf_counter()
        ids = torch.tensor(prompts)
        with torch.no_grad():
            out = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                min_new_tokens=new_tokens,
                max_new_tokens=new_tokens,
                pad_token_id=0,
            )
        return {"seconds": time.perf_counter() - began, "tokens": int(out.shape[0] * (out.shape[1] - ids.shape[1]))}

    def logprobs(self, rows: list[list[int]]) -> dict[str, Any]:
        """log p of every token after the first, one list a row."""
        answer = []
        with torch.no_grad():
            for row in rows:
                ids = torch.tensor([row])
                logp = torch.log_softmax(self.model(ids).logits[0, :-1].double(), -1)
                answer.append(logp.gather(-1, ids[0, 1:, None])[:, 0].tolist())
        return {"logprobs": answer}


def main() -> None:
    peer: Peer | None = None
    for line in sys.stdin:
        command = json.loads(line)
        operation = command.pop("operation")
        if operation == "open":
            peer = Peer(**command)
            answer: dict[str, Any] = {"torch": torch.__version__}
        elif peer is None:
            answer = {"error": "open comes first"}
        else:
            answer = getattr(peer, operation)(**command)
        print(json.dumps(answer), flush=True)


main()
