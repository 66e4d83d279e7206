/** Why a title is refused. The page and its handlers use the same function. */
export const problem = (title: string): string | null =>
  title.trim() === "" ? "Write a title." : title.length > 20 ? `${title.length - 20} characters too long.` : null;
