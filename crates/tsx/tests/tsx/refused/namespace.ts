export const one = 1;
export as namespace Own;
