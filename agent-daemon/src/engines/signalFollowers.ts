// Many requests may follow one AbortSignal: one listener serves them all, so that Node sees no leak where there is none.

interface Followed {
  readonly actions: Set<() => void>;
  readonly listener: () => void;
}

export class SignalFollowers {
  private readonly followed = new Map<AbortSignal, Followed>();

  /** Runs `action` when the signal aborts; the returned function ends that. The signal has not aborted yet. */
  follow(signal: AbortSignal, action: () => void): () => void {
    const { actions, listener } = this.followed.get(signal) ?? this.listen(signal);
    actions.add(action);
    return () => {
      actions.delete(action);
      if (actions.size > 0) return;
      signal.removeEventListener("abort", listener);
      this.followed.delete(signal);
    };
  }

  private listen(signal: AbortSignal): Followed {
    const actions = new Set<() => void>();
    const listener = () => {
      for (const action of [...actions]) action();
    };
    signal.addEventListener("abort", listener, { once: true });
    const followed = { actions, listener };
    this.followed.set(signal, followed);
    return followed;
  }
}
