<?php
// The hello page as a PHP user would write it, with a length, so that clients of HTTP/1.0 can keep the
// connection.
$page = '<h1>Hello ' . htmlspecialchars($_GET['name'] ?? '') . '</h1>';
header('Content-Length: ' . strlen($page));
echo $page;
