//! Commands that are listened to.

use lula_protocol::{ToolOutcome, ToolOutputDetails};
use lula_runner_api::client::SessionEvents;
use lula_runner_api::{SessionControl, SessionEvent, StartSession, StreamName};
use serde_json::json;

use super::{Scene, done};

fn session(scene: &Scene, line: &str) -> StartSession {
    StartSession {
        call: scene.call("exec", json!({"argv": ["sh", "-c", line]})),
        background: false,
        terminal: None,
        open_input: false,
    }
}

async fn name(events: &mut SessionEvents) -> String {
    match events.next().await.unwrap() {
        Some(SessionEvent::Started { session }) => session,
        other => panic!("{other:?}"),
    }
}

async fn output(events: &mut SessionEvents) -> String {
    match events.next().await.unwrap() {
        Some(SessionEvent::Output { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn output_arrives_as_it_is_written_and_input_goes_in() {
    let scene = Scene::new(&[("a", "")]);
    scene.wait(async {
        let client = scene.client();
        let mut start = session(
            &scene,
            "echo ready; read x; echo got $x; echo bad >&2; exit 4",
        );
        start.open_input = true;
        let mut events = client.start(&start).await.unwrap();
        let name = name(&mut events).await;
        assert_eq!(output(&mut events).await, "ready\n");
        let typed = SessionControl::Input {
            text: "word\n".to_owned(),
        };
        client.control(&name, &typed).await.unwrap();
        let (mut seen, mut ended) = (Vec::new(), None);
        while let Some(event) = events.next().await.unwrap() {
            match event {
                SessionEvent::Output { stream, text } => seen.push((stream, text)),
                SessionEvent::Ended { result } => ended = Some(result),
                SessionEvent::Started { .. } => panic!(),
            }
        }
        assert!(
            seen.contains(&(StreamName::Stdout, "got word\n".to_owned())),
            "{seen:?}"
        );
        assert!(
            seen.contains(&(StreamName::Stderr, "bad\n".to_owned())),
            "{seen:?}"
        );
        let ended = *ended.unwrap();
        let again = client.start(&start).await.unwrap().finish().await.unwrap();
        assert_eq!(again, ended, "the same id is not run again");
        assert!(matches!(
            done(ended).details,
            Some(ToolOutputDetails::Command { status: 4, .. })
        ));
    });
}

#[test]
fn a_terminal_has_a_size_and_signals_arrive() {
    let scene = Scene::new(&[("a", "")]);
    scene.wait(async {
        let client = scene.client();
        let mut start = session(
            &scene,
            "trap 'exit 9' USR1; stty size; while :; do sleep 0.05; done",
        );
        start.terminal = Some(lula_runner_api::TerminalSize {
            rows: 10,
            columns: 33,
        });
        let mut events = client.start(&start).await.unwrap();
        let name = name(&mut events).await;
        assert_eq!(output(&mut events).await, "10 33\r\n");
        client
            .control(&name, &SessionControl::Signal { signal: 10 })
            .await
            .unwrap();
        let result = events.finish().await.unwrap();
        assert!(matches!(
            done(result).details,
            Some(ToolOutputDetails::Command { status: 9, .. })
        ));
    });
}

#[test]
fn a_foreground_command_ends_when_nobody_listens_and_a_background_one_goes_on() {
    let scene = Scene::new(&[("a", "")]);
    scene.wait(async {
        let client = scene.client();
        let mut events = client.start(&session(&scene, "sleep 600")).await.unwrap();
        name(&mut events).await;
        drop(events);
        // The workspace's turn comes back only when the command is gone.
        let call = scene.call("exec", json!({"argv": ["true"]}));
        done(client.execute(&call).await.unwrap());

        let mut start = session(&scene, "echo one; sleep 600");
        start.background = true;
        let mut events = client.start(&start).await.unwrap();
        let name = name(&mut events).await;
        assert_eq!(output(&mut events).await, "one\n");
        drop(events);
        let call = scene.call("exec", json!({"argv": ["true"]}));
        done(client.execute(&call).await.unwrap());
        let mut events = client.attach(&name).await.unwrap();
        super::sessions::name(&mut events).await;
        assert_eq!(
            output(&mut events).await,
            "one\n",
            "what was written is still there"
        );
        assert_eq!(client.sessions().await.unwrap().sessions.len(), 1);
        client.close(&name).await.unwrap();
        let result = events.finish().await.unwrap();
        assert!(
            matches!(result.outcome, ToolOutcome::Done { .. }),
            "{result:?}"
        );
        assert!(client.sessions().await.unwrap().sessions.is_empty());
    });
}
