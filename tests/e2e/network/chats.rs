//! A name that is denied in a chat is offered as the smallest grant.

use super::Stage;
use crate::chat::ChatTerminal;
use crate::support::Repo;

#[test]
fn a_denied_name_is_offered_as_the_smallest_grant_and_reached_once_it_is_given() {
    let stage = Stage::new();
    Repo::buggy(&stage.world);
    let arguments = ["chat", "--net", "pkg.example.org"];
    let terminal = ChatTerminal::of(&stage.world, (100, 40), &[], stage.program(), &arguments);
    terminal.turn(1);
    let line = "!curl -sSf --max-time 10 https://other.example.org/chat";
    terminal.say(line);
    let seen = terminal.sees("The sandbox was denied other.example.org:443.");
    assert!(seen.contains("grant exactly this"), "{seen}");
    assert!(!stage.heard().contains("GET other.example.org /chat"));
    terminal.press(&["g"]);
    terminal.sees("granted to the sandboxes of this chat: other.example.org:443");
    terminal.turn(2);
    terminal.say(line);
    let seen = terminal.sees("GET /chat says other.example.org");
    assert_eq!(
        seen.matches("was denied").count(),
        2,
        "asked once, and answered: {seen}"
    );
    terminal.turn(3);
    terminal.say("/net");
    terminal.sees("allowed other.example.org:443");
    let audit = stage.world.run(&["audit", "show"]).exits(0);
    assert!(audit.stdout.contains("net.grant"), "{}", audit.stdout);
}
