import { Live } from "bine";
export default ({ rows }) => (
  <main>
    <buton typ="a">Post</buton>
    <ul>{rows.map((row) => <p id="x">{row}</p>)}</ul>
    <p style="colour: red; margin: 1pz"><div>a</div></p>
    <img src="a.png" />
    <input type="txt" maxlength="a" />
    <input type="text" key={1} className="b" />
    <button onClick={() => 1}>a</button>
    <a onclick={rows}>b</a>
    <br>a</br>
    <p class="a" class="b">{/* nothing */}</p>
    <select><Live><option>a</option></Live></select>
    <title><Live>a</Live></title>
    <p {...rows} {...rows}>{...rows}</p>
    <script>{"</script>"}<b>a</b></script>
    {rows.length > 0 ? <li>a</li> : <td>b</td>}
    <table>{rows && <li>c</li>}</table>
  </main>
);
