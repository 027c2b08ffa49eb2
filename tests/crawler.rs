//! The queues of docs/sets.md: four workers over real URLs, on a server that is killed in between.
//! With a set, each page is visited once except for the promised share; exactly, each once.

mod common;

use common::page::examples;
use common::{Random, Server, bound, column, data_lines, run, value};
use postgres::{Client, Config, NoTls};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const PAGE: &str = "docs/sets.md";
const WORKERS: usize = 4;
/// Links of a page.
const LINKS: usize = 8;
/// The rate of the page's set.
const FPR: f64 = 0.01;

/// Pages, each of which has links to others.
struct Web {
    urls: Vec<String>,
    links: Vec<[usize; LINKS]>,
}

impl Web {
    /// Real URLs, each linked to some others at random.
    fn new(pages: usize) -> Web {
        let mut urls = data_lines("crawl-a.txt.gz");
        urls.extend(data_lines("crawl-b.txt.gz"));
        urls.sort();
        urls.dedup();
        let mut random = Random(7);
        // Real ones, from all over the lists.
        let step = urls.len() / pages;
        let urls: Vec<String> = urls.into_iter().step_by(step.max(1)).take(pages).collect();
        let links = urls
            .iter()
            .map(|_| std::array::from_fn(|_| random.below(urls.len())))
            .collect();
        Web { urls, links }
    }

    /// All pages that can be reached from the first.
    fn reachable(&self) -> usize {
        let (mut reached, mut next) = (BTreeSet::from([0]), vec![0]);
        while let Some(page) = next.pop() {
            next.extend(self.links[page].iter().copied().filter(|&link| reached.insert(link)));
        }
        reached.len()
    }

    fn links_of(&self, url: &str) -> Vec<&str> {
        let page = self
            .urls
            .binary_search_by(|other| other.as_str().cmp(url))
            .expect("only known pages are queued");
        self.links[page]
            .iter()
            .map(|&link| self.urls[link].as_str())
            .collect()
    }
}

/// The functions that a queue is used by.
#[derive(Clone, Copy)]
struct Queue {
    push: &'static str,
    pop: &'static str,
    table: &'static str,
}

/// Visits pages until the queue is empty and all others are idle, or the connection is gone.
/// Whether it is gone.
fn work(directory: &Path, web: &Web, queue: Queue, busy: &AtomicUsize) -> bool {
    let connect = Config::new()
        .host_path(directory)
        .user("postgres")
        .dbname("crawl")
        .connect(NoTls);
    let Ok(mut client) = connect else { return true };
    loop {
        busy.fetch_add(1, Ordering::SeqCst);
        let visited = visit(&mut client, web, queue);
        busy.fetch_sub(1, Ordering::SeqCst);
        match visited {
            Ok(true) => {}
            Ok(false) if busy.load(Ordering::SeqCst) == 0 => return false,
            Ok(false) => thread::sleep(Duration::from_millis(5)),
            Err(error) => {
                let state = error
                    .code()
                    .map_or("gone".to_owned(), |state| state.code().to_owned());
                assert!(state == "gone" || state.starts_with("57P"), "{error:?}");
                return true;
            }
        }
    }
}

/// One page in one transaction; false if there is none.
fn visit(client: &mut Client, web: &Web, queue: Queue) -> Result<bool, postgres::Error> {
    let mut transaction = client.transaction()?;
    let url: Option<String> =
        transaction.query_one(&format!("SELECT {}()", queue.pop), &[])?.get(0);
    let Some(url) = url else { return Ok(false) };
    transaction.execute("INSERT INTO visits VALUES ($1)", &[&url])?;
    transaction.execute(&format!("SELECT {}($1::text[])", queue.push), &[&web.links_of(&url)])?;
    transaction.commit()?;
    Ok(true)
}

/// Crawls the web, killing one session after a third of it and the server after two. Pages visited,
/// and distinct ones.
fn crawl(server: &Server, web: &Web, queue: Queue) -> (i64, i64) {
    let mut client = server.connect("crawl");
    run(
        &mut client,
        &format!(
            "TRUNCATE {}; DROP TABLE IF EXISTS visits; CREATE TABLE visits (url text NOT NULL)",
            queue.table
        ),
    );
    client
        .execute(&format!("SELECT {}($1::text[])", queue.push), &[&vec![&web.urls[0]]])
        .expect("can be pushed");
    for crash in 0..3 {
        let busy = AtomicUsize::new(0);
        let gone: Vec<bool> = thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| scope.spawn(|| work(server.dir(), web, queue, &busy)))
                .collect();
            if crash < 2 {
                let enough = (web.urls.len() * (crash + 1) / 3) as i64;
                while value::<i64>(&mut client, "SELECT count(*) FROM visits") < enough {
                    thread::sleep(Duration::from_millis(5));
                }
                if crash == 0 { kill_a_worker(&mut client) } else { server.kill9() }
            }
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a worker ends"))
                .collect()
        });
        assert!(gone.iter().all(|&gone| gone == (crash < 2)), "{gone:?}");
        if crash < 2 {
            server.restart_after_crash();
            client = server.connect("crawl");
        }
    }
    assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM {}", queue.table)), 0);
    (
        value(&mut client, "SELECT count(*) FROM visits"),
        value(&mut client, "SELECT count(DISTINCT url) FROM visits"),
    )
}

fn kill_a_worker(client: &mut Client) {
    let pid = loop {
        let at_work: Vec<i32> = column(
            client,
            "SELECT pid FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend'",
        );
        if let Some(&pid) = at_work.first() {
            break pid;
        }
    };
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
}

#[test]
fn each_page_is_visited_once() {
    let web = Web::new(3_000);
    let reachable = web.reachable() as i64;
    assert!(reachable > 2_900);
    let server = Server::start("");
    let mut client = server.database("crawl");
    // The blocks that define something, as the page has them.
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE))
        .expect("the page can be read");
    let lines: Vec<&str> = text.lines().collect();
    let blocks = examples(PAGE, &lines, "sql");
    let mut define = |what: &str| {
        let block = blocks
            .iter()
            .find(|block| block.code.contains(what))
            .expect("the page defines it");
        run(&mut client, &block.code);
    };
    define("FUNCTION push(");
    define("FUNCTION push_exactly(");
    run(
        &mut client,
        "TRUNCATE queue, pages; DROP TABLE crawled; SELECT bloom_set_create('crawled', 'text', 3000, 0.01)",
    );

    let set = Queue { push: "push", pop: "pop", table: "frontier" };
    let (visits, distinct) = crawl(&server, &web, set);
    println!("with a set: {visits} of {reachable} pages visited");
    assert_eq!(visits, distinct, "a page was visited twice");
    let lost = (reachable - visits) as f64;
    assert!(
        lost >= 0.0 && lost <= reachable as f64 * FPR + bound(reachable as f64, FPR),
        "{lost} of {reachable} lost"
    );
    let mut client = server.connect("crawl");
    let overfull: bool = value(&mut client, "SELECT overfull FROM bloom_set_info('crawled')");
    assert!(!overfull);

    let exact = Queue { push: "push_exactly", pop: "pop_exactly", table: "queue" };
    let (visits, distinct) = crawl(&server, &web, exact);
    println!("exactly: {visits} of {reachable} pages visited");
    assert_eq!((visits, distinct), (reachable, reachable));
}
