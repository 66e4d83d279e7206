import { page, service, type Upload } from "bine";

export const keep = service(async (ctx, { picture }: { picture: Upload }) => {
  const path = `pictures/${crypto.randomUUID()}.png`;
  await picture.save(path);
  return { path, size: picture.size };
});

export default page(() => (
  <main>
    <h1>Upload</h1>
    <progress id="sent" value="0" max="1">0</progress>
    <p id="kept"></p>
    <input
      type="file"
      id="picture"
      aria-label="Picture"
      onchange={async (event) => {
        const bar = document.querySelector<HTMLProgressElement>("#sent")!;
        const form = new FormData();
        form.append("picture", event.currentTarget.files![0]!);
        // `fetch` reports no progress of what it sends.
        const request = new XMLHttpRequest();
        request.upload.onprogress = ({ loaded, total }) => {
          bar.value = loaded / total;
        };
        request.open("POST", "/keep");
        request.setRequestHeader("Accept", "application/json");
        await new Promise((resolve, reject) => {
          request.onload = resolve;
          request.onerror = () => reject(new Error("The picture has not arrived."));
          request.send(form);
        });
        if (request.status !== 200) throw new Error(request.responseText);
        const { path, size } = JSON.parse(request.responseText);
        document.querySelector("#kept")!.textContent = `${size} ${path}`;
        const picture = document.createElement("img");
        picture.alt = "The picture";
        picture.src = `/${path}`;
        document.querySelector("main")!.append(picture);
      }}
    />
  </main>
));
