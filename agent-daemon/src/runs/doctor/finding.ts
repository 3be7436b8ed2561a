// What a check of the self-check is given and what it finds.

/** What a check found; a check that throws has failed with the error's sentence. */
export interface Finding {
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  readonly next: string | null;
}

export interface DoctorContext {
  /** Folder of a recipe whose model and data are looked at; null: the machine alone. */
  readonly recipe: string | null;
  /** Folder that runs are made in: its disk is the one that counts. */
  readonly outputDir: string;
  /** A folder on the disk of outputDir where the checks may write; removed afterwards. */
  readonly scratch: string;
  /** False: nothing can be written where runs are made, and `scratch` lies elsewhere. */
  readonly writable: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly network: boolean;
}
