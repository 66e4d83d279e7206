import { CURRENCY } from "../currency.browser.ts";

export const price = (amount: number): string => `${amount} ${CURRENCY}`;
