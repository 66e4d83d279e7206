import type { LayoutProps } from "bine";

export default ({ children, title }: LayoutProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>{title}</title>
    </head>
    <body>
      <header>
        <a href="/"><img src="/logo.svg" alt="The Hopyard" width="220" height="48" /></a>
        <nav>
          <a href="/browse">Browse</a> <a href="/sell">Sell</a>{" "}
          <a href="/me">About me</a> <a href="/register">Register</a>
        </nav>
      </header>
      <main>{children}</main>
    </body>
  </html>
);
