// An image of a turn, fetched when it is looked at. Its bytes go into an image element only, where nothing of it can run.
import { useEffect, useState } from "preact/hooks";
import type { TurnPart } from "../../protocol/trajectoryView.ts";
import { type Problem, problemOf } from "../shared/problem.ts";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

interface ImageProps {
  readonly page: InspectorPage;
  readonly part: Extract<TurnPart, { kind: "image" }>;
}

type Image =
  | { readonly state: "loading" }
  | { readonly state: "shown"; readonly url: string }
  | ({ readonly state: "failed" } & Problem);

export function ImagePart({ page, part }: ImageProps) {
  const words = inspectorWords();
  const [image, setImage] = useState<Image>({ state: "loading" });
  useEffect(() => {
    const abort = new AbortController();
    let url: string | null = null;
    const source = page.source.peek();
    page.client.callBulk("trajectory/image", { source, handle: part.handle }, { signal: abort.signal }).then(
      ({ arrays, extra }) => {
        const bytes = arrays.get("bytes") ?? new Uint8Array();
        const type = typeof extra["mediaType"] === "string" ? extra["mediaType"] : part.mediaType;
        url = URL.createObjectURL(new Blob([new Uint8Array(bytes)], { type }));
        setImage({ state: "shown", url });
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setImage({ state: "failed", ...problemOf(error) });
      },
    );
    return () => {
      abort.abort();
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [part.handle]);
  const size = part.width === null || part.height === null ? "" : ` ${part.width} × ${part.height}`;
  const label = `${words.image} ${part.mediaType}${size}`;
  if (image.state === "shown") return <img class="image" src={image.url} alt={label} title={label} />;
  return (
    <p class="image-place muted">
      {label} {image.state === "failed" && `· ${words.imageFailed} ${image.message} ${image.next}`}
    </p>
  );
}
