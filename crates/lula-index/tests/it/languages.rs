//! What is found in each language, as a list of definitions.

use lula_index::{IndexLanguage, SkippedFileReason, SymbolKind, tags};

/// One line for each definition: indented by nesting, with kind and signature; then the names used.
fn outline(path: &str, text: &str) -> String {
    let tags = tags(IndexLanguage::of(path).unwrap(), text.as_bytes()).unwrap();
    let mut lines = Vec::new();
    for symbol in &tags.symbols {
        let mut depth = 0;
        let mut at = symbol;
        while let Some(parent) = at.parent {
            at = &tags.symbols[parent as usize];
            depth += 1;
        }
        lines.push(format!(
            "{}{} {} | {}",
            "  ".repeat(depth),
            symbol.kind.name(),
            symbol.name,
            symbol.signature
        ));
    }
    let uses: Vec<_> = tags.uses.iter().map(|(name, _)| name.as_str()).collect();
    lines.push(format!("uses {}", uses.join(" ")));
    lines.join("\n")
}

#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let expected = expected.trim_matches('\n');
    let found = outline(path, text);
    assert!(
        found == expected,
        "{path} gives\n{found}\nand not\n{expected}"
    );
}

#[test]
fn python() {
    check(
        "a.py",
        "import os.path\nfrom shop.money import Money\n\nMAX_ITEMS = 3\n\n@register\nclass Cart(Base):\n    limit = 4\n    async def add(\n        self,\n        item: Item,\n    ) -> None:\n        local_name = helper(item)\n        def inner(): pass\n        return local_name.total\n\ndef free(x): return MAX_ITEMS\n",
        "
constant MAX_ITEMS | MAX_ITEMS = 3
class Cart | class Cart(Base)
  method add | async def add(self, item: Item,) -> None
    function inner | def inner()
function free | def free(x)
uses Base Item MAX_ITEMS Money helper local_name register total",
    );
}

#[test]
fn javascript_with_jsx() {
    check(
        "a.jsx",
        "import { useCart } from './cart';\nexport const TAX_RATE = 0.2;\nexport const priceOf = (item) => { return item.price; };\nexport function Shop({ items }) { return <CartView items={items} />; }\nclass Store extends Base {\n  #secret = 1;\n  buy(item) { return this.stock.take(item); }\n  onClick = () => { go(); };\n}\nmodule.exports.helper = function (a) { return a; };\n",
        "
constant TAX_RATE | TAX_RATE = 0.2
function priceOf | priceOf = (item)
function Shop | function Shop({ items })
class Store | class Store extends Base
  method buy | buy(item)
  method onClick | onClick = ()
function helper | module.exports.helper = function (a)
uses #secret Base CartView exports go items price stock take useCart",
    );
}

#[test]
fn typescript() {
    check(
        "a.ts",
        "export interface Priced { price(): Money; }\nexport type Id = string;\nexport enum Size { Small, Large }\nexport abstract class Shelf<T extends Priced> implements Holder {\n  private items: T[] = [];\n  abstract pick(id: Id): T;\n  put(item: T): void { this.items.push(item); }\n}\n",
        "
interface Priced | interface Priced
  method price | price(): Money
type Id | type Id = string
enum Size | enum Size
class Shelf | abstract class Shelf<T extends Priced> implements Holder
  method pick | abstract pick(id: Id): T
  method put | put(item: T): void
uses Holder Id Large Money Priced Small T items push",
    );
    check(
        "a.tsx",
        "export const View = (props: Props): JSX.Element => <Row {...props} />;\n",
        "
function View | View = (props: Props): JSX.Element
uses Element Props Row",
    );
}

#[test]
fn rust() {
    check(
        "a.rs",
        "use crate::money::{Money, parse_price};\n\npub(crate) const LIMIT: usize = 3;\n\n/// A cart.\n#[derive(Debug)]\npub struct Cart<T> { items: Vec<T> }\n\nimpl<T> Cart<T> {\n    pub fn total(&self, tax: Rate) -> Money {\n        self.items.iter().map(priced).sum(parse_price(\"1\"))\n    }\n}\n\npub trait Priced { fn price(&self) -> Money; }\n\nmacro_rules! cart { () => {} }\n\nmod inner { pub enum Size { Small } }\n",
        "
constant LIMIT | pub(crate) const LIMIT: usize = 3
struct Cart | pub struct Cart<T>
impl Cart | impl<T> Cart<T>
  method total | pub fn total(&self, tax: Rate) -> Money
trait Priced | pub trait Priced
  method price | fn price(&self) -> Money
macro cart | macro_rules! cart
module inner | mod inner
  enum Size | pub enum Size
uses Cart Debug Money Rate Small T Vec items iter map money parse_price sum",
    );
}

#[test]
fn go() {
    check(
        "a.go",
        "package shop\n\nconst MaxItems = 3\n\ntype Cart struct {\n\tItems []Item\n}\n\ntype Priced interface {\n\tPrice() Money\n}\n\nfunc (c *Cart) Total(tax Rate) Money {\n\treturn money.Sum(c.Items)\n}\n\nfunc NewCart() *Cart { return &Cart{} }\n",
        "
constant MaxItems | MaxItems = 3
type Cart | Cart struct
type Priced | Priced interface
  method Price | Price() Money
method Total | func (c *Cart) Total(tax Rate) Money
function NewCart | func NewCart() *Cart
uses Cart Item Items Money Rate Sum",
    );
}

#[test]
fn java() {
    check(
        "A.java",
        "import shop.Money;\n\npublic class Cart extends Base implements Priced {\n  public Cart(Stock stock) { this.stock = stock; }\n  @Override\n  public Money total(int tax) { return stock.sumOf(tax); }\n  enum Size { SMALL }\n}\n\ninterface Priced { Money total(int tax); }\n",
        "
class Cart | public class Cart extends Base implements Priced
  method Cart | public Cart(Stock stock)
  method total | @Override public Money total(int tax)
  enum Size | enum Size
interface Priced | interface Priced
  method total | Money total(int tax)
uses Base Money Override Priced SMALL Stock shop stock sumOf",
    );
}

#[test]
fn c_and_cpp() {
    check(
        "a.c",
        "#include \"cart.h\"\n#define MAX_ITEMS 3\n\nstruct cart { struct item *items; };\ntypedef struct cart cart_t;\n\nint cart_total(const cart_t *cart);\n\nstatic int *cart_find(cart_t *cart, int id) {\n  return lookup(cart->items, id);\n}\n",
        "
macro MAX_ITEMS | #define MAX_ITEMS 3
struct cart | struct cart
type cart_t | typedef struct cart cart_t
function cart_total | int cart_total(const cart_t *cart)
function cart_find | static int *cart_find(cart_t *cart, int id)
uses cart cart_t item items lookup",
    );
    check(
        "a.cpp",
        "namespace shop {\nclass Cart : public Base {\n public:\n  Money total(Rate tax) const { return sum_of(items_); }\n};\n}\n\nMoney shop::Cart::find(const Id& id) { return lookup(id); }\n",
        "
module shop | namespace shop
  class Cart | class Cart : public Base
    method total | Money total(Rate tax) const
function find | Money shop::Cart::find(const Id& id)
uses Base Cart Id Money Rate lookup shop sum_of",
    );
}

#[test]
fn ruby() {
    check(
        "a.rb",
        "require 'money'\n\nmodule Shop\n  TAX_RATE = 2\n  class Cart < Base\n    def total(tax)\n      Money.sum_of(items, tax)\n    end\n\n    def self.build\n      new\n    end\n  end\nend\n",
        "
module Shop | module Shop
  constant TAX_RATE | TAX_RATE = 2
  class Cart | class Cart < Base
    method total | def total(tax)
    method build | def self.build
uses Base Money require sum_of",
    );
}

#[test]
fn hostile_files_are_bounded_and_named() {
    let python = |text: &[u8]| tags(IndexLanguage::Python, text);
    assert_eq!(
        python(&vec![b'a'; lula_index::MAX_FILE + 1]),
        Err(SkippedFileReason::TooLarge)
    );
    assert_eq!(python(b"x = 1\0"), Err(SkippedFileReason::Binary));
    assert_eq!(
        python("x=[1,2,3];".repeat(10_000).as_bytes()),
        Err(SkippedFileReason::Generated)
    );
    // Depth, text that makes the parser look ahead for ever, text that makes it guess for ever.
    let deep = "(\n".repeat(100_000);
    for language in IndexLanguage::ALL {
        assert_eq!(
            tags(language, deep.as_bytes()),
            Err(SkippedFileReason::TooHard)
        );
    }
    assert_eq!(
        python("\n\\".repeat(50_000).as_bytes()),
        Err(SkippedFileReason::TooHard)
    );
    assert_eq!(
        tags(IndexLanguage::Ruby, "<a\n".repeat(2_000).as_bytes()),
        Err(SkippedFileReason::TooHard)
    );
    // Text of other languages, and nests that are right.
    for unit in ["if x:\n ", "\"\"\"\n", "`\n", "do |x\n", "=> \n", "a."] {
        for language in IndexLanguage::ALL {
            let _ = tags(language, unit.repeat(3_000 / unit.len()).as_bytes());
        }
    }
    let invalid =
        b"def f():\n    return g\xff\xfe(1)\n\ndef \xc3\x28(): pass\n\ndef good(): pass\n";
    let found = python(invalid).unwrap();
    assert!(found.symbols.iter().any(|symbol| symbol.name == "good"));
    assert!(
        found
            .symbols
            .iter()
            .all(|symbol| symbol.kind == SymbolKind::Function)
    );
}

#[test]
fn a_signature_shows_nothing_that_is_not_seen() {
    let text = "def f(a='\u{1b}[31m', b='\u{202e}x'):\n    pass\n";
    let found = tags(IndexLanguage::Python, text.as_bytes()).unwrap();
    assert_eq!(found.symbols[0].signature, "def f(a='[31m', b='x')");
    let noted = tags(IndexLanguage::Python, b"def f(a):  # why\n    pass\n").unwrap();
    assert_eq!(noted.symbols[0].signature, "def f(a)");
    let long = format!("def f({}):\n    pass\n", "a, ".repeat(500));
    let found = tags(IndexLanguage::Python, long.as_bytes()).unwrap();
    assert!(found.symbols[0].signature.chars().count() <= 161);
    assert!(found.symbols[0].signature.ends_with('…'));
}
