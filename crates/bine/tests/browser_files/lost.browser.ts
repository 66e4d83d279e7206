import { put } from "bine:services";
export { lost } from "bine:services";

export const add = () => put({ item: 1 });
