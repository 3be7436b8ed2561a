export interface Supervisor {
  dispose(): void;
}
