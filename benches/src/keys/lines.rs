//! Log lines of a dozen systems in random order, made from templates: the same ones for the same
//! seed.
//!
//! The size of an index over windows of three bytes, and what it finds, depend on what the lines
//! repeat and on what is new in each. So the templates were fitted to real lines: 20,000 of ten
//! systems, from Loghub (<https://github.com/logpai/loghub>), shuffled, with rows as in the table
//! `message`, letters lower-cased.
//!
//! | | real lines | these |
//! |---|---:|---:|
//! | bytes of a line, mean | 119 | 125 |
//! | distinct windows in 16 pages | 6,327 | 6,504 |
//! | distinct words (of letters and digits) in 16 pages | 2,283 | 2,658 |
//! | digits among all characters | 29 % | 28 % |
//! | ranges of 15,000 lines that have all windows of a pattern that no row has, mean | 26 % | 30 % |
//! | of such patterns, those for which no range has all windows | 64 % | 62 % |
//!
//! Patterns are 8 to 20 bytes of lines that are not among the 15,000, half of them with a letter
//! changed.

/// Random numbers: SplitMix64.
pub struct Random(u64);

impl Random {
    /// The ones that follow from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below another.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Puts these in any order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }

    /// One of these, the first ones more often than the last; far more often if the skew is 2.
    fn mostly_first<'a, T>(&mut self, all: &'a [T], skew: usize) -> &'a T {
        let end = (0..skew).fold(all.len(), |end, _| self.below(end) + 1);
        &all[self.below(end)]
    }

    /// A line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let system = self.one_of(&SYSTEMS);
        let template = self.mostly_first(system.templates, 2);
        self.expand(system.head, &mut line);
        self.expand(template, &mut line);
        line
    }

    /// Appends a template with its blanks filled in.
    fn expand(&mut self, template: &str, line: &mut String) {
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('{') {
            line.push_str(text);
            let (blank, after) = after.split_once('}').expect("a blank has an end");
            self.fill(blank, line);
            rest = after;
        }
        line.push_str(rest);
    }

    /// Appends what a blank stands for: `007..999` a number, with as many digits as the first one
    /// at least; `x8` hexadecimal digits; `a|b` one of these texts; else an entry of the list of
    /// that name.
    fn fill(&mut self, blank: &str, line: &mut String) {
        let number = |text: &str| text.parse::<usize>().expect("a blank has numbers");
        if let Some((first, last)) = blank.split_once("..") {
            let value = number(first) + self.below(number(last) - number(first) + 1);
            line.push_str(&format!("{value:0width$}", width = first.len()));
        } else if blank.contains('|') {
            let texts: Vec<&str> = blank.split('|').collect();
            line.push_str(texts[self.below(texts.len())]);
        } else if let Some(digits) = blank.strip_prefix('x') {
            (0..number(digits))
                .for_each(|_| line.push(char::from(*self.one_of(b"0123456789abcdef"))));
        } else {
            let (_, list) = LISTS
                .iter()
                .find(|(name, _)| *name == blank)
                .expect("a blank names a list");
            let entries: Vec<&str> = list.split(", ").collect();
            let entry = self.mostly_first(&entries, 1);
            self.expand(entry, line);
        }
    }
}

/// A system whose lines begin alike.
struct System {
    head: &'static str,
    /// What follows, the most frequent ones first.
    templates: &'static [&'static str],
}

const SYSTEMS: [System; 12] = [
    System {
        head: "{ip} - {-|-|-|user} [{01..28}/{month}/2031:{time} +0000] ",
        templates: &[
            "\"GET /{path} HTTP/1.1\" 200 {size} \"-\" \"{agent}\"",
            "\"GET /static/{word}.{1..40}.{js|css|png} HTTP/1.1\" {200|304} {0..9999} \"https://{site}/\" \"{agent}\"",
            "\"POST /{path} HTTP/1.1\" {201|204|400|422} {2..999} \"https://{site}/\" \"{agent}\"",
            "\"GET /{path}?page={1..60}&sort={word} HTTP/1.1\" 200 {size} \"-\" \"{agent}\"",
            "\"GET /wp-login.php?redirect_to={word} HTTP/1.0\" 404 153 \"-\" \"{agent}\"",
        ],
    },
    System {
        head: "{month} {1..28} {time} gate{01..12} login[{20000..20999}]: ",
        templates: &[
            "rejected password of {user} at {ip} port {1024..65535} for the service ssh: maximum number of attempts not yet reached",
            "pam_session(login): session opened for user {user} by (uid=0)",
            "pam_session(login): session closed for user {user} after {1..99999} seconds",
            "authentication failure; logname= uid=0 tty=ssh ruser= rhost={1..254}-{1..254}-{1..254}.dsl.{site}",
            "accepted key of {user} at {ip} port {1024..65535} fingerprint {x12}",
            "connection of {ip} reset before authentication",
        ],
    },
    System {
        head: "2031-0{1..9}-{01..28} {time},{000..999} {INFO|INFO|INFO|WARN} storage.",
        templates: &[
            "ChunkReceiver: received chunk chk_{1000000000..9999999999}{100000000..999999999} of size {size} from /10.{ten}",
            "ChunkMap: added replica /10.{ten}:{50010|50020} of chk_{1000000000..9999999999}{100000000..999999999}, size {size}",
            "ChunkSender: sent chk_{1000000000..9999999999}{100000000..999999999} to /10.{ten}:{1024..65535}",
            "Scrubber: verified chk_{1000000000..9999999999}{100000000..999999999}, {1..40} blocks, {word}",
            "Replicator: asked /10.{ten} to copy chk_{1000000000..9999999999}{100000000..999999999} to {2|3} nodes",
            "Janitor: deleting {1..400} chunks of {path}, free space {1..99}.{0..9} %",
        ],
    },
    System {
        head: "2031-10-{10..19} {time},{000..999} {INFO|INFO|WARN|ERROR} [{thread}] com.example.{class}: ",
        templates: &[
            "task_{1930000000..1939999999}_{0001..0060}_{m|r}_{000000..000400}_{0..3} went from {state} to {state}",
            "progress of attempt_{1930000000..1939999999}_{0001..0060}_m_{000000..000400} is 0.{1000000..9999999}",
            "container_{1930000000..1939999999}_{0001..0060}_01_{000001..000300} assigned on {host}:{1024..65535}, memory {1024|2048|4096}, cores {1..8}",
            "recalculating the schedule, headroom memory {0..64000}, completed maps {0..48}, scheduled reducers {0..48}",
            "could not reach {host}/{ip}:{8020|8030|9000}; retry {0..9}, {word} {word}",
            "java.net.{ConnectException|SocketTimeoutException}: {word} of {host} failed on {word} after {1..60000} ms",
        ],
    },
    System {
        head: "2031-03-{01..28} {time}.{000..999} UTC {21000..21499} {user} ",
        templates: &[
            "LOG:  duration: {0..900}.{000..999} ms  statement: SELECT name, price, stock FROM {word} WHERE id = {1..9999999} FOR UPDATE",
            "LOG:  duration: {0..90}.{000..999} ms  execute <unnamed>: UPDATE {word} SET modified = now(), total = total + $1 WHERE id = $2",
            "LOG:  connection authorized: application_name={service}",
            "LOG:  checkpoint complete: wrote {1..99999} buffers ({0..60}.{0..9}%); write={0..269}.{000..999} s",
            "ERROR:  duplicate key value violates unique constraint \"{word}_pkey\", detail: key (id)=({1..9999999}) already exists",
            "LOG:  temporary file for sorting, size {size}, because work memory was exceeded",
        ],
    },
    System {
        head: "{month} {1..28} {time} mx{1..4} mail/{smtp|qmgr|local|cleanup}[{1200..1299}]: ",
        templates: &[
            "to=<{user}@{site}>, relay={site}[{ip}]:25, delay={0..9}.{0..9}, status=sent (250 ok queued as {100000..999999})",
            "from=<{user}@{site}>, size={size}, nrcpt={1..4} (queue active)",
            "to=<{user}@{site}>, relay=none, status=deferred ({word} {word} by {site}: try again later)",
            "message-id=<{x8}.2031@{site}>",
        ],
    },
    System {
        head: "{1925000000..1929999999} r{00..63}-m{0|1}-n{0..15}-c{00..31} {RAS|HW} ",
        templates: &[
            "KERNEL INFO {1..999} double-word alignment exceptions were handled by the floating point unit",
            "KERNEL INFO corrected {word} error of type {0..9}, bank {0..7}, syndrome 0x{x2}",
            "MEMORY WARN correctable directory {word}: rank {0..3}, symbol {0..35}, mask 0x{x2}",
            "KERNEL FATAL {word} interrupt, instruction address: 0x{x8}",
            "NET ERROR lost contact over link {0..11} of the tree network, packet sequence {1..99999999}",
            "APP INFO generating core.{1..32767} of {word}",
        ],
    },
    System {
        head: "20311{0..2}{10..28}-{time}:{000..999}|",
        templates: &[
            "Pedometer|30002312|onStep {1000..9999} standing, walking, running, total steps today {1000..99999}##{1000..9999}##{100000..999999}",
            "Alarms|30002312|set {word} for {1920000000000..1929999999999}, {word} {0..99}",
            "Screen|30002312|action {SCREEN_ON|SCREEN_OFF|TIME_TICK|USER_PRESENT} after {1..99999} ms",
            "HeartRate|30002312|calculated calories {0..2000}, altitude {0..999}, pulse {48..180}",
            "Sync|30002312|uploading the list of {word}s finished, size {0..40}, result success",
        ],
    },
    System {
        head: "time=\"2031-07-{01..28}T{time}.{000000..999999}Z\" level={info|info|warning|error} ",
        templates: &[
            "msg=\"pulled image\" image=registry.{site}/{service}:{1..4}.{0..20}.{0..30} took={0..30}s",
            "msg=\"probe failed\" pod={service}-{0..9} namespace={word} status={500|502|503}",
            "msg=\"started container {word}\" pod={service}-{0..9} node={host}",
            "msg=\"request\" trace={1000000000..9999999999} service={service} route=/{path} took={0..900}ms",
            "msg=\"scaled {word}\" deployment={service} from={1..12} to={1..12}",
            "msg=\"volume {word}\" pvc={x8}-{x4}-{x4}-{x4}-{x12} node={host}",
        ],
    },
    System {
        head: "1929{100000..999999}.{000..999} {0..9999} 10.{ten} ",
        templates: &[
            "MISS/200 {size} GET http://{site}/{path} - DIRECT/{ip} text/html",
            "HIT/200 {size} GET http://{site}/images/{word}.png - NONE/- image/png",
            "TUNNEL/200 {size} CONNECT {site}:443 - DIRECT/{ip} -",
            "DENIED/403 {1000..4000} CONNECT {ip}:{1..65535} {user} NONE/- text/html",
        ],
    },
    System {
        head: "[2031-01-{01..28} {time},{000..999}] {INFO|INFO|INFO|WARN} ",
        templates: &[
            "[Broker {1..9}] partition {service}-{0..63} starts at leader epoch {1..99} from offset {1..99999999}, previous leader unknown",
            "[Log {service}-{0..63}] rolled new log segment at offset {1..99999999} in {1..90} ms",
            "[Group {service}] member {word} has joined; preparing to rebalance, generation {1..999}",
            "[Session 0x{x12}] expired because no heartbeat was received, closing socket connection of /{ip}:{1024..65535}",
            "[Worker {1..9}] connection to node {1..9} ({host}:{2181|3888|9092}) broken: end of stream exception, will try to reconnect",
            "[Quorum {1..9}] notification: {1..9} (leader), 0x{1..40}00000000 (zxid), round {1..400}, my state {LOOKING|FOLLOWING|LEADING}",
        ],
    },
    System {
        head: "31/06/{01..28} {time} {INFO|INFO|WARN} ",
        templates: &[
            "engine.Executor: finished task {0..400}.{0..2} in stage {0..90}.0 (id {1..9999}), {500..4000} bytes result sent to driver",
            "engine.Executor: running task {0..400}.{0..2} in stage {0..90}.0 (id {1..9999}) on the local executor",
            "storage.Cache: block rdd_{1..99}_{0..400} {stored as values|found locally|evicted}, {1..900}.{0..9} KB, free {1..9} GB",
            "engine.Shuffle: fetching {1..400} blocks of {1..400} from {1..40} nodes, {0..99} ms",
            "input.Split: hdfs://{host}:9000/{path}/part-{00000..00400}:{0..99999999}+{1000..99999}",
            "engine.{class}: times: total = {30..900}, boot = {1..99}, init = {1..99}, finish = {0..9}",
        ],
    },
];

/// What the blanks of templates name: texts with commas between them.
const LISTS: [(&str, &str); 15] = [
    ("time", "{00..23}:{00..59}:{00..59}"),
    ("month", "Jan, Feb, Mar, Apr, May, Jun, Jul, Aug, Sep, Oct, Nov, Dec"),
    ("ten", "250.{0..31}.{1..254}, 251.{0..255}.{1..254}, {0..9}.{0..255}.{1..254}"),
    (
        "ip",
        "10.{ten}, 203.0.113.{1..254}, 198.51.100.{1..20}, {11..223}.{0..255}.{0..255}.{1..254}",
    ),
    ("size", "67108864, {1000..99999}, {1..999}, 8192, {100000..9999999}"),
    (
        "user",
        "root, admin, guest, deploy, backup, oracle, postgres, test, jenkins, ubuntu, maria, chen, nagios, \
         ftpuser, olga, support, kwame, webmaster, git, pi",
    ),
    (
        "host",
        "node-{1..400}, worker{01..40}, db{1..6}.internal, cache-{a|b|c}{1..9}, edge{001..120}, mesos-{00..35}, \
         gw-{fra|ams|nyc|sin}-{1..4}",
    ),
    (
        "site",
        "shop.example.com, example.org, cdn.example.net, mail.example.com, news.example, wiki.example.org, \
         img.example.com, {word}.example.net",
    ),
    (
        "path",
        "api/orders/{1..999999}, catalog/view/{1..9999}, home/{word}, data/daily/2031/0{1..9}/{01..28}, health, \
         search, {word}-{word}.html, var/lib/{word}.log.{1..9}",
    ),
    (
        "service",
        "checkout, frontend, payments, search-api, inventory, auth, mailer, recommendation, ingest, \
         billing-worker, geo, thumbnailer",
    ),
    (
        "thread",
        "main, dispatcher-{0..9}, ipc handler {0..30} on {40000..65535}, allocator, fetcher#{1..9}, uploader, \
         lease renewer {user}@{host}",
    ),
    ("state", "NEW, SCHEDULED, ASSIGNED, RUNNING, COMMIT_PENDING, SUCCEEDED, KILL_WAIT, FAILED"),
    (
        "class",
        "scheduler.TaskTracker, scheduler.ContainerAllocator, rpc.Server, fs.LeaseRenewer, job.CommitHandler, \
         job.impl.TaskAttempt, shuffle.MergeManager, metrics.Sink, security.TokenCache, util.Retry",
    ),
    (
        "agent",
        "Mozilla/5.0 (X11; Linux x86_64), Mozilla/5.0 (Windows NT 10.0; Win64) Gecko/20100101, \
         curl/8.{0..9}.{0..2}, Mozilla/5.0 (iPhone; CPU OS {15..18}_{0..6}), python-requests/2.{20..32}, \
         Zgrab/0.x, okhttp/4.{0..12}",
    ),
    (
        "word",
        "word, order, user, account, session, image, product, index, cache, queue, token, report, invoice, \
         profile, message, block, page, event, filter, config, search, item, stream, group, status, device, \
         memory, timeout, parity, refused, closed, expired, unknown, address, network, channel, login, metric, \
         replica, buffer, thread, signal, worker, backup, archive, region, ticket, comment, upload, payment, \
         coupon, catalog, review, label, sensor, module, kernel, socket, gateway, policy, secret, volume, \
         bucket, cluster, shard, tenant, journal, snapshot, trigger, record, column, vector, matrix, budget, \
         salary, vendor, harbor, bridge, castle, garden, winter, yellow, purple, quartz, jigsaw, oxygen, zephyr, \
         whisky, fjord, rhythm, sphinx, galaxy, knight, quotient, liquid, puzzle, wizard, voyage, umbrella, \
         tundra, oblique, hybrid, mystic, nozzle, canyon, dynamo, exodus, acknowledge, bandwidth, cipher, \
         daemon, electrode, firmware, gigabyte, hostname, ignored, jitter, keyboard, latency, manifest, \
         negotiated, overflow, pipeline, query, registry, scheduler, throttle, uptime, validator, watchdog, \
         xylophone, yield, zone, abort, bootstrap, compact, descriptor, elapsed, fallback, granted, handshake, \
         incoming, journalctl, kickoff, lookup, mounted, namespace, obsolete, permission, quorum, resolved, \
         shutdown, truncated, unmapped, verify, writable, exceeded, younger, agreed, bluetooth, crossing, \
         default, efficient, filename, graphics, hyphen, inactive, joystick, leftover, machine, northern, \
         optimum, physical, rejected, skipped, technical, unable, visible, warehouse, exchange",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_from_the_seed_and_have_no_blanks() {
        let [mut random, mut again, mut other] = [1, 1, 2].map(Random::new);
        let lines: Vec<String> = (0..10_000).map(|_| random.line()).collect();
        assert!(lines.iter().all(|line| *line == again.line()));
        assert!(lines.iter().all(|line| line.is_ascii() && !line.contains(['{', '}'])));
        assert!(!lines.contains(&other.line()));
        let bytes = lines.iter().map(String::len).sum::<usize>() / lines.len();
        assert!((110..140).contains(&bytes), "{bytes} bytes in the mean");
    }

    #[test]
    fn all_templates_can_be_filled() {
        let mut random = Random::new(1);
        let heads = SYSTEMS
            .iter()
            .flat_map(|system| system.templates.iter().chain([&system.head]).copied());
        for template in heads.chain(LISTS.iter().flat_map(|(_, list)| list.split(", "))) {
            random.expand(template, &mut String::new());
        }
    }
}
