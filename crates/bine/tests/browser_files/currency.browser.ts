export const CURRENCY: string = "€";
