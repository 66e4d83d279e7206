import { page } from "bine";
import { classes, offer } from "bine:services";

type Item = {
  id: string;
  name: string;
  description: string;
  quantity: number;
  first_price: number;
  reserve: number | null;
  buy_now: number | null;
  bids: number;
  highest: number;
  ends: string;
};

export default page(async (ctx, { item: id }) => {
  const { item, seller } = await offer({ item: id });
  const style = await classes();
  ctx.title = item.name;
  const isOpen = item.quantity > 0 && Date.parse(item.ends) > Date.now();
  return (
    <>
      <h1>{item.name}</h1>
      <dl>
        <dt>{item.bids === 0 ? "Begins at" : "Highest bid"}</dt>
        <dd class={style.price}>${Math.max(item.highest, item.first_price)}</dd>
        <dt>Bids</dt>
        <dd><a href={`/items/${item.id}/bids`}>{item.bids}</a></dd>
        <dt>Time</dt>
        <dd>{item.quantity > 0 ? left(item.ends) : "sold"}</dd>
        <dt>Reserve</dt>
        <dd>{reserve(item)}</dd>
        <dt>Quantity</dt>
        <dd>{item.quantity}</dd>
        <dt>Seller</dt>
        <dd>
          <a href={`/users/${seller.id}`}>{seller.name}</a> ({seller.rating}){" "}
          <a href={`/users/${seller.id}/comment?item=${item.id}`}>Comment</a>
        </dd>
      </dl>
      {isOpen && (
        <p class={style.actions}>
          <a href={`/items/${item.id}/bid`}>Bid for it</a>
          {item.buy_now !== null && <a href={`/items/${item.id}/buy`}>Buy it now for ${item.buy_now}</a>}
        </p>
      )}
      <h2>Description</h2>
      <p>{item.description}</p>
    </>
  );
});

function reserve({ reserve, bids, highest }: Item): string {
  if (reserve === null) return "none";
  return bids > 0 && highest >= reserve ? "reached" : "not reached";
}

/** The remaining time. */
function left(ends: string): string {
  const minutes = Math.trunc((Date.parse(ends) - Date.now()) / 60_000);
  const [days, hours] = [Math.trunc(minutes / (24 * 60)), Math.trunc(minutes / 60) % 24];
  if (minutes < 0) return "ended";
  if (days > 0) return `${days} d ${hours} h left`;
  return hours > 0 ? `${hours} h left` : `${minutes % 60} min left`;
}
