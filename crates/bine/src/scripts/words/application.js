// What the host calls: the pages and the services of an application.
import { Answer, thrown, toHost } from "bine:internal/answers";
import { Page, context, serviceOf, titles } from "bine:internal/context";
import { serviceUrl, setCompression, setTitle } from "bine:internal/call";
import { withUploads } from "bine:internal/forms";
import { isDocument, written } from "bine:internal/trees";
import "bine:internal/fetch";

/** `pages`: file, module and layout of each page; `modules`: those with services; `errors`: the module
 * of the error page, or null. */
export function $application(pages, modules, errors, title) {
  const rendered = {}, services = {}, asynchronous = [];
  for (const module of modules) {
    for (const [name, value] of Object.entries(module)) {
      const found = serviceOf(value);
      if (found === undefined || Object.hasOwn(services, name)) continue;
      value.url = serviceUrl(name);
      services[name] = calling(found.run);
      if (found.isAsync) asynchronous.push(name);
    }
  }
  for (const [file, module, layout] of pages) {
    if (module.default instanceof Page) {
      rendered[file] = rendering(module, layoutOf(layout), module.title ?? title);
    }
  }
  const result = { pages: rendered, services, asynchronous };
  const shown = errors?.default;
  if (typeof shown === "function") result.error = (about) => written(shown({ ...about, base: context.base }));
  return result;
}

function layoutOf(module) {
  if (module === null) return null;
  if (typeof module.default === "function") return module.default;
  throw new TypeError(
    "a `_layout.tsx` exports its function: export default ({ children, title }) => <html>..</html>",
  );
}

/** The page of a module with its layout. Without one, the host writes the document, and its title. A tree that is a
 * whole document has no layout. */
function rendering({ default: { render }, compress }, layout, title) {
  const within = (result) => {
    if (layout === null || result instanceof Answer || isDocument(result)) return written(toHost(result));
    // The host is asked only if a page has ever set a title of its own.
    const shown = titles.areSet ? (context.title ?? title) : title;
    return written(layout({ children: result, title: shown, path: context.path, base: context.base }));
  };
  return (parameters) => {
    let result;
    try {
      if (compress !== undefined) setCompression(compress);
      if (layout === null && title !== "") setTitle(title);
      result = render(context, parameters);
      if (result instanceof Promise) return result.then(within).catch(thrown);
      return within(result);
    } catch (reason) {
      return thrown(reason);
    }
  };
}

function calling(run) {
  return (values, hasFiles) => {
    try {
      const result = run(context, hasFiles ? withUploads(values) : values);
      return result instanceof Promise ? result.then(toHost, thrown) : toHost(result);
    } catch (reason) {
      return thrown(reason);
    }
  };
}
