export default () => (
  <p>
    <b>never closed</p>
);
