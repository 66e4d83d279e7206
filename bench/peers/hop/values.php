<?php
// The page of values as a PHP user would write it. strtr escapes as Bine does, so that all servers
// send the same bytes.
$duties = [
    ["Roads & bridges", "Ann"], ["Water", "Bob O'Neill"], ["Light", "Cecilia"], ["Post < 2 kg", "Dora"],
    ["Telegraph", "Emil \"Em\" Berg"], ["Harbor", "Frida"], ["Forests", "Gustav"], ["Schools", "Hanna"],
    ["Archive & library", "Ivar"], ["Fire", "Jo"],
];
function escape(string $text): string
{
    return strtr($text, ["&" => "&amp;", "<" => "&lt;", ">" => "&gt;", "\"" => "&quot;", "'" => "&#39;"]);
}
header("Content-Type: text/html; charset=utf-8");
?><h1>On duty</h1><p>Whom to call this week, and for what. A name that is missing here has the week off.</p><table><tr><th>Team</th><th>Person</th></tr><?php foreach ($duties as [$team, $person]) {
    echo '<tr><td class="team">', escape($team), '</td><td class="person">', escape($person), '</td></tr>';
} ?></table><p>If nobody answers within ten minutes, call the next one on this list; it goes round from the top.</p><?php
header("Content-Length: " . ob_get_length());
