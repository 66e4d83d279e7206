// Uses of the words for forms and other servers that an editor accepts, and those that it rejects.

import { change, invalid, remote, RemoteError, remoteEvents, service, type Upload } from "bine";

export const add = service((ctx, { title, picture, more }: { title: string; picture: Upload; more?: Upload[] }) => {
  if (!picture.type.startsWith("image/")) return invalid({ picture: "must be a picture" });
  if (title === "") throw invalid({ title: "must not be empty", picture: undefined });
  const bytes: Uint8Array = picture.bytes();
  return [bytes.length === picture.size, picture.name, picture.text(), more?.map((one) => one.size) ?? []];
});
export const keep = service(async (ctx, { picture }: { picture: Upload }) => {
  await picture.save("pictures/1.png");
  await change(() => 1);
});

interface Cellar {
  heat(given: { degrees: number; until?: string }): number;
  all(): string[];
  readonly name: string;
}
export const warm = service(async (ctx, { degrees }: { degrees: number }) => {
  const cellar = remote<Cellar>("https://cellar.home:8443/cellar", { token: "brewing", timeout: 500 });
  const now: number = await cellar.heat({ degrees });
  const all: string[] = await cellar.all();
  const board = remote<{ add: typeof add }>(new URL("https://board.home/"));
  console.log(board);
  try {
    return [now, all, await remote("https://other.home").anything({ a: 1 })];
  } catch (error) {
    if (error instanceof RemoteError && error.reason === "unreached") return [error.status];
    throw error;
  }
});
export const follow = service(async () => {
  const readings = remoteEvents<number>("https://cellar.home:8443", "temperature");
  const degrees: number | undefined = await readings.next(500);
  readings.close();
  return degrees;
});

const cellar = remote<Cellar>("https://cellar.home:8443/cellar");
invalid({ title: 1 }); // rejected: Type 'number' is not assignable to type 'string'
invalid("title"); // rejected: Argument of type 'string'
service((ctx, { picture }: { picture: Upload }) => picture.length); // rejected: Property 'length' does not exist
service((ctx, { picture }: { picture: Upload }) => picture.save(1)); // rejected: Argument of type 'number'
cellar.heat({ degrees: "21" }); // rejected: Type 'string' is not assignable to type 'number'
cellar.heat({ degree: 21 }); // rejected: 'degree' does not exist
cellar.heat(); // rejected: Expected 1 arguments
cellar.cool({ degrees: 1 }); // rejected: Property 'cool' does not exist
cellar.name; // rejected: Property 'name' does not exist
cellar.heat({ degrees: 1 }).toFixed(); // rejected: Property 'toFixed' does not exist on type 'Promise<number>'
remote(8443); // rejected: Argument of type 'number'
remote("https://a", { tokn: "a" }); // rejected: 'tokn' does not exist
remoteEvents("https://a"); // rejected: Expected 2-3 arguments
