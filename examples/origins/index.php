<?php
// A site in PHP whose visitors see new messages at once. Bine is in front of it: it answers /channels
// and passes everything else on. Start it with `php -S 127.0.0.1:9000 index.php`.

if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $text = $_POST['text'] ?? '';
    $message = json_encode(['channels' => ['public/news'], 'data' => ['text' => $text]]);
    $token = getenv('PUSH_TOKEN');
    $fields = $token ? "Authorization: Bearer $token\r\n" : '';
    // The address of Bine, which this site is behind.
    file_get_contents(getenv('BINE_URL') . '/channels', false, stream_context_create(['http' => [
        'method' => 'POST',
        'header' => $fields . 'Content-Type: application/json',
        'content' => $message,
        'timeout' => 5,
    ]]));
    header('Location: /', true, 303);
    exit;
}
$visitor = htmlspecialchars($_SERVER['HTTP_X_FORWARDED_FOR'] ?? 'nobody');
?>
<!doctype html>
<title>PHP</title>
<p>A page for <?= $visitor ?></p>
<form method="post"><input name="text"><button>Publish</button></form>
<ul></ul>
<script>
new EventSource('/channels?c=public/news&gap=allow').onmessage = event => {
    const item = document.createElement('li');
    item.textContent = JSON.parse(event.data).text;
    document.querySelector('ul').append(item);
};
</script>
