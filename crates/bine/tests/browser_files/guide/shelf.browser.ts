import { price } from "bine:services";

type Item = { id: number; name: string };

export const ask = async (event: MouseEvent, item: Item): Promise<void> => {
  const button = event.currentTarget as HTMLButtonElement;
  const cents = await price({ item: item.id });
  button.textContent = `${item.name}: ${cents} cents`;
};
