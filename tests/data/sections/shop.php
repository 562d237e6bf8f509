<h1>It's a shop</h1>
<?php
namespace Shop\Inner;

# function no() {
#[Attribute]
final class Shop extends Base implements Sells
{
    use Things { a as b; }

    public function __construct(
        private string $name,
        protected array $items = [],
    ) {
    }

    /**
     * Adds {.
     */
    public static function add(int $a, string ...$rest): ?array
    {
        $f = function ($x) use ($a) {
            return "{$x} }";
        };
        $g = fn ($x) => $x;
        $text = <<<EOT
        function heredoc() {
        EOT;
        return array_map($f, $rest);
    }

    abstract function none();
}

trait Things {
    function &go() { return Shop::class; }
}

function last() {
    return new class { public function x() { return 1; } };
}
