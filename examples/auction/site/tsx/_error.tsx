import type { ErrorProps } from "bine";
import Layout from "./_layout.tsx";

export default ({ title, message }: ErrorProps) => (
  <Layout title={title}>
    <h1>{title}</h1>
    <p>{message}</p>
  </Layout>
);
