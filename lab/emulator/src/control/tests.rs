use super::*;
use crate::control::ask::{Asked, questions};
use std::io::{BufRead as _, BufReader};

/// A control socket without a network: the driver refuses every question.
struct Served {
    address: SocketAddr,
}

fn served(name: &str, limits: ClientLimits) -> Served {
    let name = format!("{name}-{}", std::process::id());
    let (asker, mut asked) = questions().unwrap();
    let hosts = [("a".to_owned(), "/proc/1/ns/net".to_owned())].into();
    let about = About { name: name.clone(), hosts, user: None };
    Control::bind(&name).unwrap().serve_within(limits, about, &asker).unwrap();
    std::thread::spawn(move || {
        loop {
            asked.woken();
            while let Some(Asked { answer, .. }) = asked.next() {
                let _ = answer.send(Err("no driver".to_owned()));
            }
        }
    });
    let address = SocketAddr::from_abstract_name(socket_name(geteuid().as_raw(), &name)).unwrap();
    Served { address }
}

impl Served {
    /// The answer, and the connection.
    fn ask(&self, question: &Question) -> (Answer, UnixStream) {
        let mut stream = UnixStream::connect_addr(&self.address).unwrap();
        let mut line = serde_json::to_string(question).unwrap();
        line.push('\n');
        // Who is refused may be so before it asks.
        let _ = stream.write_all(line.as_bytes());
        (answer(&stream), stream)
    }

    fn wrong(&self, question: &Question) -> String {
        match self.ask(question).0 {
            Answer::Wrong(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

fn answer(stream: &UnixStream) -> Answer {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn who_stays_leaves_room_for_questions() {
    let patience = Duration::from_secs(60);
    let limits = ClientLimits { connections: 4, staying: 2, captures: 1, patience };
    let served = served("room", limits);
    let enter = Question::Enter { host: "a".to_owned() };
    let (one, other) = (served.ask(&enter), served.ask(&enter));
    for (answer, _) in [&one, &other] {
        assert!(matches!(answer, Answer::Enter { .. }), "{answer:?}");
    }
    assert!(served.wrong(&enter).contains("too many captures and programs in hosts"));
    let capture = Question::Capture { port: "a.eth0".to_owned() };
    assert!(served.wrong(&capture).contains("too many captures and programs in hosts"));
    // It can still be asked, once the connections of those who were refused have ended.
    let asked = Deadline::after(patience).wait_for("an answer", || {
        Ok((served.wrong(&Question::Status) == "no driver").then_some(()))
    });
    asked.unwrap();
    // Silent clients take the remaining connections as others end, until their time is over.
    let mut silent = Vec::new();
    let refused = Deadline::after(patience).wait_for("a refusal", || {
        silent.push(UnixStream::connect_addr(&served.address).unwrap());
        let why = served.wrong(&Question::Status);
        Ok(why.contains("too many connections at once: 4 at most").then_some(()))
    });
    refused.unwrap();
    drop((silent, one));
    let free = Deadline::after(patience).wait_for("a slot", || {
        Ok(matches!(served.ask(&enter).0, Answer::Enter { .. }).then_some(()))
    });
    free.unwrap();
}

#[test]
fn a_question_in_drops_has_its_time_in_all() {
    let patience = Duration::from_millis(100);
    let limits = ClientLimits { connections: 4, staying: 2, captures: 1, patience };
    let served = served("drops", limits);
    let stream = UnixStream::connect_addr(&served.address).unwrap();
    let mut writer = &stream;
    let mut refused = false;
    for _ in 0..2_000 {
        if writer.write_all(b"x").is_err() {
            refused = true;
            break;
        }
        clock::pause(Duration::from_millis(10));
    }
    assert!(refused, "each drop gave it more time");
}

#[test]
fn a_question_without_end_is_refused() {
    let patience = Duration::from_secs(60);
    let limits = ClientLimits { connections: 4, staying: 2, captures: 1, patience };
    let served = served("long", limits);
    let mut stream = UnixStream::connect_addr(&served.address).unwrap();
    let _ = stream.write_all(&vec![b'x'; MAX_QUESTION + 4_097]);
    match answer(&stream) {
        Answer::Wrong(why) => assert!(why.contains("longer than 65536 octets"), "{why}"),
        other => panic!("{other:?}"),
    }
}
