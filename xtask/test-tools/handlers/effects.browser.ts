/** A handler in a file of the browser. */
export const shout = (event: Event): void => {
  (event.currentTarget as HTMLElement).textContent += "!";
};
