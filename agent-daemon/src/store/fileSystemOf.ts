// Tells on which kind of file system a path lies, and refuses those where SQLite's locks cannot be trusted. It only asks.
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { RollscopeError } from "../../../protocol/errors.ts";

/** Name of the file system's type, as the system calls it ("ext4", "nfs4", "fuse.sshfs"); null where it cannot be told. */
export type FileSystemProbe = (path: string) => string | null;

const network =
  /^(nfs[34]?|cifs|smb[23]?|smbfs|9p|afs|afpfs|webdav|lustre|gpfs|beegfs|ceph|ocfs2|gfs2|pvfs2|orangefs|panfs|wekafs|coda|davfs|fuse\.(sshfs|s3fs|gcsfuse|goofys|rclone|juicefs|glusterfs|mfs|ceph|cephfs|ceph-fuse|curlftpfs|davfs2?|smbnetfs|lustre|beegfs|mountpoint-s3|seaweedfs|alluxio-fuse|hf3fs.*))$/;

export function isNetworkFileSystem(type: string): boolean {
  return network.test(type);
}

/** Throws STORE_NETWORK_FILE_SYSTEM when `path`, or the nearest folder above it that exists, lies on a network file system. */
export function requireLocalFileSystem(path: string, probe: FileSystemProbe = fileSystemOf): void {
  const type = probe(path);
  if (type === null || !isNetworkFileSystem(type)) return;
  throw new RollscopeError(
    "STORE_NETWORK_FILE_SYSTEM",
    `The record store ${path} would lie on a network file system (${type}), where the locks that keep it whole cannot be trusted.`,
    {
      next: "Set ROLLSCOPE_OUTPUT_DIR to a folder on a local disk of this machine, or use a MongoDB store.",
      at: { path, type },
    },
  );
}

export function fileSystemOf(path: string): string | null {
  if (process.platform === "win32") return /^\\\\[^.?]/.test(resolve(path)) ? "smb" : null;
  try {
    const real = nearestExisting(resolve(path));
    return process.platform === "linux"
      ? typeByMountInfo(readFileSync("/proc/self/mountinfo", "utf8"), real)
      : typeByMountCommand(execFileSync("mount", { encoding: "utf8", timeout: 5000 }), real);
  } catch {
    return null;
  }
}

/** Type of the mount that holds `path`, from the text of /proc/self/mountinfo; of mounts on one place the last one counts. */
export function typeByMountInfo(text: string, path: string): string | null {
  return typeByMounts(
    text.split("\n").flatMap((line) => {
      const [before, after] = line.split(" - ");
      const place = before?.split(" ")[4];
      const type = after?.split(" ")[0];
      return place === undefined || type === undefined ? [] : [{ place: unescapeOctal(place), type }];
    }),
    path,
  );
}

/** The same from the output of `mount` on macOS and BSD: "what on /place (type, options)". */
export function typeByMountCommand(text: string, path: string): string | null {
  return typeByMounts(
    text.split("\n").flatMap((line) => {
      const match = /^.* on (\/.*) \(([^,)]+)/.exec(line);
      return match === null ? [] : [{ place: match[1] as string, type: match[2] as string }];
    }),
    path,
  );
}

function typeByMounts(
  mounts: readonly { readonly place: string; readonly type: string }[],
  path: string,
): string | null {
  let best: { readonly place: string; readonly type: string } | null = null;
  for (const mount of mounts) {
    const inside = path === mount.place || path.startsWith(mount.place.endsWith(sep) ? mount.place : mount.place + sep);
    if (inside && (best === null || mount.place.length >= best.place.length)) best = mount;
  }
  return best?.type ?? null;
}

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function nearestExisting(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    if (parent === path) throw new Error("no folder of the path exists");
    return nearestExisting(parent);
  }
}
