import { call, on } from "bine:browser";
import { delete as empty, put } from "bine:services";
import { price } from "./folder/price.browser.ts";

type Item = { id: number; name: string };

const stop = (event: Event): void => event.preventDefault();

export const add = async (event: MouseEvent, item: Item): Promise<void> => {
  const button = event.currentTarget as HTMLButtonElement;
  button.textContent = price(await put({ item: item.id, count: 2 }));
};

export function remove(event: DragEvent) {
  stop(event);
  empty();
  on("sold", (item: Item) => call("/browser_files/put", { item: item.id }));
}

const loop = () => {};
export { loop };
