<?php
// The hello page as a PHP user would write it.
?><h1>Hello <?= htmlspecialchars($_GET['name'] ?? '') ?></h1>
