import { page } from "bine";
import { classes } from "bine:services";

export const title = "The Hopyard, an auction house";

export default page(async () => {
  const style = await classes();
  return (
    <>
      <h1>Good things, sold to whoever gives most</h1>
      <p>Look around, bid for what you like, and sell what you have too much of.</p>
      <p class={style.actions}>
        <a href="/categories">All categories</a> <a href="/regions">What is near you</a>
        <a href="/sell">Sell something</a>
      </p>
    </>
  );
});
