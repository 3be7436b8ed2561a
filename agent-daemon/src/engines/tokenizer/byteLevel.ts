// The alphabet of byte-level tokenizers: one printable character stands for each of the 256 bytes (GPT-2's table).

/** Character of each byte, indexed by byte: printable Latin-1 stands for itself, the others follow from U+0100 on in order. */
export const byteCharacters: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(printable ? byte : next++);
  });
})();

const byteOf: ReadonlyMap<string, number> = new Map(byteCharacters.map((character, byte) => [character, byte]));

/** Bytes of a token's text; characters outside the alphabet (added tokens) count as their own UTF-8. */
export function byteLevelBytes(token: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of token) {
    const byte = byteOf.get(character);
    if (byte === undefined) return new TextEncoder().encode(token);
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
