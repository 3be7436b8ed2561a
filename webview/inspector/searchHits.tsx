// Places that a search found, in order; choosing one shows it in its turn.
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../shared/controls.tsx";
import { countText } from "../shared/text.ts";
import { VirtualList, type VirtualListHandle } from "../shared/virtualList.tsx";
import type { InspectorPage } from "./page.ts";
import { inspectorWords } from "./words.ts";

export function SearchHits({ page }: { readonly page: InspectorPage }) {
  const words = inspectorWords();
  const { hits, next, cut, running, current, text } = page.search.state.value;
  const handle = useRef<VirtualListHandle>(null);
  useEffect(() => {
    if (current >= 0) handle.current?.scrollToIndex(current);
  }, [current]);
  return (
    <div class="hits">
      <div class="hits-bar">
        <span class="muted" role="status">
          {hits.length > 0
            ? `${current >= 0 ? `${countText(current + 1)} / ` : ""}${words.searchHits(countText(hits.length), next !== null)}`
            : running
              ? words.searching
              : words.noHits}
        </span>
        <Button look="icon" label={words.previous} onPress={() => void page.search.step(-1)}>
          ↑
        </Button>
        <Button look="icon" label={words.next} onPress={() => void page.search.step(1)}>
          ↓
        </Button>
        <Button
          look="icon"
          label={words.close}
          onPress={() => {
            page.change({ search: "" });
            page.search.forget();
          }}
        >
          ×
        </Button>
      </div>
      <VirtualList
        className="turn-list"
        kind="listbox"
        label={words.hits}
        count={hits.length}
        estimate={() => 42}
        fixed
        overscan={2}
        active={current}
        onActive={(index) => page.search.choose(index)}
        handle={handle}
        render={(index) => {
          const hit = hits[index]!;
          const at = hit.excerpt.toLowerCase().indexOf(text.toLowerCase());
          return (
            <div class="turn-line">
              <span class="turn-role">{words.turn(countText(hit.turn + 1))}</span>
              <span class="muted">{hit.in === "part" ? "" : words.call}</span>
              <span class="turn-snippet muted">
                {hit.excerpt.slice(0, Math.max(0, at))}
                <mark>{at < 0 ? hit.excerpt : hit.excerpt.slice(at, at + text.length)}</mark>
                {at < 0 ? "" : hit.excerpt.slice(at + text.length)}
              </span>
            </div>
          );
        }}
      />
      {cut && (
        <p class="hits-cut muted" role="note">
          {words.hitsCut}
        </p>
      )}
      {next !== null && !running && <Button onPress={() => void page.search.more()}>{words.moreHits}</Button>}
    </div>
  );
}
