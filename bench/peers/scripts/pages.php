<?php
// The pages of `scripts` in PHP. The rows are an array in a file that opcache keeps in shared memory,
// which costs less than any database. bine-bench fills in @HEAD@, the script of live pages.
function layout(string $title, callable $content): void {
?><!DOCTYPE html><html lang="en"><head><title><?= htmlspecialchars($title) ?></title>@HEAD@</head><body><?php $content() ?></body></html><?php
}
header('Content-Type: text/html; charset=utf-8');
switch ($_GET['page'] ?? 'hello') {
case 'hello':
    layout('Hello', function () {
        ?><h1>Hello <?= htmlspecialchars($_GET['name'] ?? '') ?></h1><?php
    });
    break;
case 'rows20':
    layout('Visits', function () {
        $rows = require __DIR__ . '/rows.php';
        ?><h1>Visits</h1><ul><?php
        foreach (array_slice($rows['entries'], 0, 20) as $entry) {
            ?><li id="<?= htmlspecialchars($entry['number']) ?>"><?= htmlspecialchars($entry['body']) ?> <i><?= htmlspecialchars($entry['author']) ?></i></li><?php
        }
        ?></ul><?php
    });
    break;
case 'rows50':
    layout('Messages', function () {
        $rows = require __DIR__ . '/rows.php';
        ?><h1>Messages</h1><ol><?php
        foreach (array_slice($rows['messages'], 0, 50) as $message) {
            ?><li><b><?= htmlspecialchars($message['author']) ?></b> <time><?= htmlspecialchars($message['at']) ?></time><p><?= htmlspecialchars($message['body']) ?></p></li><?php
        }
        ?></ol><?php
    });
    break;
default:
    http_response_code(404);
}
