import type { LayoutProps } from "bine";

export default ({ children, title, base = "" }: LayoutProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>{title}</title>
      <link rel="stylesheet" href={`${base}/style.css`} />
      <link rel="icon" href={`${base}/icon.svg`} />
    </head>
    <body>
      <main>{children}</main>
    </body>
  </html>
);
