import { raw, Live as Region } from "bine";
const $html = "a name that generated code must not take";

const Card = <T,>({ title, children, ...rest }: { title: T; children?: any }) => (
  <section {...rest} class={["card", null]}>
    <h2>{title as any}</h2>
    {children}
  </section>
);

export const Page = async ({ rows, html }: any) => (
  <html lang="en">
    <head>
      <title>Rows &amp; {rows.length}</title>
    </head>
    <body>
      {/* a comment */}
      <Card<string> title="A &quot;card&quot;" wide {...rows[0]}>
        {rows.length}
      </Card>
      <Card title=<b>markup</b>><p>one</p> two</Card>
      <table>
        <tbody>
          {rows.map((row) => (
            <tr id={row.id}>
              <td>
                <a href={`/rows/${row.id}`}>{row.name as string}</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <Region>
        <p>{await rows.count()}</p>
      </Region>
      <Region>{rows[0]}</Region>
      <Region>{rows[0]}</Region>
      <textarea name="text" rows={3}>{html}</textarea>
      <script>{raw(html)}</script>
    </body>
  </html>
);
