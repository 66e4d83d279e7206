export const CURRENCY: string = "EUR";
