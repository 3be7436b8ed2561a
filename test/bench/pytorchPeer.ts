// The PyTorch peer of the benches: one Python process that holds the same weights and works only while it is asked to.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";

export class PyTorchPeer {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;
  private readonly reader: Interface;

  private constructor(child: ChildProcess) {
    this.child = child;
    this.reader = createInterface({ input: child.stdout! });
    this.lines = this.reader[Symbol.asyncIterator]();
  }

  /** Starts Python and loads the Hugging Face folder; `threads` as the engine uses. */
  static async open(folder: string, threads: number): Promise<{ peer: PyTorchPeer; torch: string }> {
    const python = process.env["ROLLSCOPE_BENCH_PYTHON"];
    if (python === undefined) throw new Error("run benches through npm run bench");
    // Old-kernel overrides of the environment would slow the peer down.
    const { OPENBLAS_CORETYPE: _core, OPENBLAS_L2_SIZE: _cache, ...environment } = process.env;
    const child = spawn(python, ["test/bench/peer_pytorch.py"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...environment, OMP_NUM_THREADS: String(threads), TRANSFORMERS_VERBOSITY: "error" },
    });
    const peer = new PyTorchPeer(child);
    const { torch } = (await peer.ask({ operation: "open", folder, threads })) as { torch: string };
    return { peer, torch };
  }

  async train(rows: number[][], wantedFrom: number, microRows: number): Promise<{ seconds: number; loss: number }> {
    const answer = await this.ask({ operation: "train", rows, wanted_from: wantedFrom, micro_rows: microRows });
    return answer as { seconds: number; loss: number };
  }

  async generate(prompts: number[][], newTokens: number): Promise<{ seconds: number; tokens: number }> {
    const answer = await this.ask({ operation: "generate", prompts, new_tokens: newTokens });
    return answer as { seconds: number; tokens: number };
  }

  async logprobs(rows: number[][]): Promise<number[][]> {
    const answer = await this.ask({ operation: "logprobs", rows });
    return (answer as { logprobs: number[][] }).logprobs;
  }

  dispose(): void {
    this.reader.close();
    this.child.kill();
  }

  private async ask(command: object): Promise<unknown> {
    this.child.stdin!.write(`${JSON.stringify(command)}\n`);
    const line = await this.lines.next();
    if (line.done === true) throw new Error("the PyTorch peer ended; its message stands above");
    return JSON.parse(line.value);
  }
}
