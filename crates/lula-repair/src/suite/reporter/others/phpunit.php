<?php
// Comes before every PHP script that a test command starts. To PHPUnit, and to Pest, which is made of it, it
// adds where results are written, and takes itself out of the environment.
(static function (): void {
    $folder = getenv('LULA_FOLDER');
    $words = $_SERVER['argv'] ?? [];
    $script = basename((string) ($words[0] ?? ''));
    if (!$folder || !is_dir("$folder/out") || !preg_match('/^(phpunit|pest)([-.0-9]*(\.phar)?)?$/', $script)) {
        return;
    }
    foreach ($words as $word) {
        if (preg_match('/^--(log-junit|list-|version|help|generate-configuration|migrate-configuration)/', $word)) {
            return;
        }
    }
    array_push($words, '--log-junit', "$folder/out/phpunit-" . getmypid() . '.xml');
    $_SERVER['argv'] = $GLOBALS['argv'] = $words;
    $_SERVER['argc'] = $GLOBALS['argc'] = count($words);
    $before = getenv('LULA_PHP_INI_SCAN_DIR');
    putenv($before ? "PHP_INI_SCAN_DIR=$before" : 'PHP_INI_SCAN_DIR');
    foreach (['LULA_FOLDER', 'LULA_REPORT', 'LULA_PHP_INI_SCAN_DIR', ...($before ? [] : ['PHP_INI_SCAN_DIR'])] as $name) {
        putenv($name);
        unset($_ENV[$name], $_SERVER[$name]);
    }
})();
