// The folder of blobs: what is there is whole, checked when it is read, and never half written.
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openFileBlobs } from "../../agent-daemon/src/store/fileBlobs.ts";
import { isNetworkFileSystem, typeByMountCommand, typeByMountInfo } from "../../agent-daemon/src/store/fileSystemOf.ts";

let folder: string;
let next = 0;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "store-blobs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fresh = () => join(folder, `${next++}`);
const bytes = (text: string) => new Uint8Array(Buffer.from(text));

describe("file blobs", () => {
  it("are named by their sha256, stored once and found whole or in part", async () => {
    const place = fresh();
    const blobs = await openFileBlobs(place);
    const hash = await blobs.put(bytes("hello world"));
    expect(hash).toBe("b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
    const [first, second] = await Promise.all([blobs.put(bytes("hello world")), blobs.put(bytes("other"))]);
    expect(first).toBe(hash);
    expect(await blobs.get(hash)).toEqual(bytes("hello world"));
    expect(await blobs.getRange(hash, 6, 5)).toEqual(bytes("world"));
    expect(await blobs.getRange(hash, 11, 0)).toEqual(new Uint8Array(0));
    const all: string[] = [];
    for await (const found of blobs.list()) all.push(found);
    expect(all.sort()).toEqual([hash, second].sort());
    expect(readdirSync(join(place, "incoming"))).toEqual([]);
  });

  it("say with a code when they are missing, and are gone after a delete", async () => {
    const blobs = await openFileBlobs(fresh());
    const hash = await blobs.put(bytes("x"));
    expect(await blobs.has(hash)).toBe(true);
    expect(await blobs.delete(hash)).toBe(true);
    expect(await blobs.delete(hash)).toBe(false);
    expect(await blobs.has(hash)).toBe(false);
    await expect(blobs.get(hash)).rejects.toMatchObject({ code: "STORE_BLOB_MISSING", at: { hash } });
    await expect(blobs.getRange(hash, 0, 1)).rejects.toMatchObject({ code: "STORE_BLOB_MISSING" });
    await expect(blobs.get("../../etc/passwd")).rejects.toMatchObject({ code: "STORE_BLOB_MISSING" });
  });

  it("that were changed or cut on disk are refused, also after a good read, and a new put repairs a cut one", async () => {
    const place = fresh();
    const blobs = await openFileBlobs(place);
    const hash = await blobs.put(bytes("0123456789"));
    const path = join(place, hash.slice(0, 2), hash.slice(2));
    expect(await blobs.getRange(hash, 0, 2)).toEqual(bytes("01"));
    writeFileSync(path, "0123456780");
    await expect(blobs.get(hash)).rejects.toMatchObject({ code: "STORE_BLOB_CORRUPT" });
    await expect(blobs.getRange(hash, 0, 2)).rejects.toMatchObject({ code: "STORE_BLOB_CORRUPT" });
    truncateSync(path, 4);
    await expect(blobs.getRange(hash, 0, 2)).rejects.toMatchObject({ code: "STORE_BLOB_CORRUPT" });
    await blobs.put(bytes("0123456789"));
    expect(await blobs.getRange(hash, 8, 2)).toEqual(bytes("89"));
    await expect(blobs.getRange(hash, 8, 3)).rejects.toMatchObject({ code: "STORE_COLUMN_INVALID" });
    expect(statSync(path).mode & 0o077).toBe(0);
  });

  it("remove what a dead writer left, and not what a living one writes", async () => {
    const place = fresh();
    await openFileBlobs(place);
    writeFileSync(join(place, "incoming", "dead"), "half");
    writeFileSync(join(place, "incoming", "living"), "half");
    utimesSync(join(place, "incoming", "dead"), new Date(0), new Date(0));
    await openFileBlobs(place);
    expect(readdirSync(join(place, "incoming"))).toEqual(["living"]);
  });

  it("cannot be opened where a file is in the way", async () => {
    const place = fresh();
    writeFileSync(place, "");
    chmodSync(place, 0o600);
    await expect(openFileBlobs(place)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });
});

describe("file systems", () => {
  const mountInfo = [
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "40 22 0:40 / /home rw shared:1 - nfs4 server:/home rw,vers=4.2",
    "41 40 0:41 / /home/kim/local\\040disk rw - xfs /dev/vdb rw",
    "42 22 0:42 / /mnt/box rw - fuse.sshfs kim@box: rw",
    "43 22 0:43 / /mnt/box rw - ext4 /dev/vdc rw",
  ].join("\n");

  it("are told by the longest mount point that holds the path, the last one on a place", () => {
    expect(typeByMountInfo(mountInfo, "/var/runs")).toBe("ext4");
    expect(typeByMountInfo(mountInfo, "/home/kim/runs")).toBe("nfs4");
    expect(typeByMountInfo(mountInfo, "/homestead")).toBe("ext4");
    expect(typeByMountInfo(mountInfo, "/home/kim/local disk/runs")).toBe("xfs");
    expect(typeByMountInfo(mountInfo, "/mnt/box/runs")).toBe("ext4");
    const mac = "/dev/disk1s1 on / (apfs, local)\n//kim@box/share on /Volumes/My share (smbfs, nodev)";
    expect(typeByMountCommand(mac, "/Volumes/My share/x")).toBe("smbfs");
    expect(typeByMountCommand(mac, "/Users/kim")).toBe("apfs");
  });

  it("over a network are known by name", () => {
    const over = [
      "nfs",
      "nfs4",
      "cifs",
      "smb3",
      "smbfs",
      "9p",
      "lustre",
      "gpfs",
      "beegfs",
      "ceph",
      "fuse.sshfs",
      "fuse.juicefs",
      "afs",
    ];
    const local = [
      "ext4",
      "xfs",
      "btrfs",
      "zfs",
      "tmpfs",
      "overlay",
      "apfs",
      "fuse.ntfs-3g",
      "fuseblk",
      "virtiofs",
      "f2fs",
    ];
    expect(over.filter((type) => !isNetworkFileSystem(type))).toEqual([]);
    expect(local.filter(isNetworkFileSystem)).toEqual([]);
  });
});
