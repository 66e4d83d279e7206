export default ({ children, title }) => (
  <html lang="en">
    <head>
      <title>{title}</title>
    </head>
    <body>{children}</body>
  </html>
);
