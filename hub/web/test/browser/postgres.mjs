// A PostgreSQL with a synchronous standby, for the page of a store in a database. As root it runs as another user, since PostgreSQL refuses to run as root.
import {execFile, spawn} from "node:child_process";
import {existsSync} from "node:fs";
import {appendFile, chown, mkdir, mkdtemp, readdir, rm} from "node:fs/promises";
import {join} from "node:path";
import {promisify} from "node:util";
import {until} from "./stage.mjs";

const run = promisify(execFile);
const nobody = 65534;

/** The directory of the newest programs of Debian; null where there are none. */
export async function programs() {
  const all = existsSync("/usr/lib/postgresql") ? await readdir("/usr/lib/postgresql") : [];
  const dirs = all.sort((a, b) => a - b).map((v) => `/usr/lib/postgresql/${v}/bin`).filter((d) => existsSync(join(d, "initdb")));
  return dirs.at(-1) ?? null;
}

/** Two servers of which one follows the other; they listen on sockets in a directory of their own. */
export class Pair {
  static async start(t, bin) {
    const p = new Pair();
    p.bin = bin;
    p.user = process.getuid() === 0 ? {uid: nobody, gid: nobody} : {};
    p.dir = await mkdtemp("/var/tmp/wf-page-pg-");
    p.alive = [];
    t.after(() => p.stop());
    if (p.user.uid) await chown(p.dir, nobody, nobody);
    await p.perform("initdb", "-D", join(p.dir, "first"), "-U", "wf", "-A", "trust", "-E", "UTF8", "--locale=C", "-N");
    p.first = await p.up("first");
    await p.sql("first", "create database wf template template0");
    await p.perform("pg_basebackup", "-h", await p.socket("first"), "-U", "wf", "-D", join(p.dir, "second"), "-X", "stream", "-c", "fast", "-C", "-S", "standby", "-R", "-N", "-d", "application_name=standby");
    await p.up("second");
    await p.sql("first", "alter system set synchronous_standby_names = standby");
    await p.sql("first", "select pg_reload_conf()");
    await until("the standby follows", async () => (await p.sql("first", "select 1 from pg_stat_replication where sync_state = 'sync'")).trim() === "1");
    return p;
  }

  /** The address of the database, at whichever of the two takes writes. */
  get address() {
    return `postgres://wf@/wf?host=${join(this.dir, "s-first")},${join(this.dir, "s-second")}&target_session_attrs=read-write`;
  }

  async socket(name) {
    const dir = join(this.dir, `s-${name}`);
    await mkdir(dir, {recursive: true});
    if (this.user.uid) await chown(dir, nobody, nobody);
    return dir;
  }

  perform(program, ...args) {
    return run(join(this.bin, program), args, {cwd: this.dir, env: {PATH: "/usr/bin:/bin", LC_ALL: "C"}, ...this.user});
  }

  async sql(name, text) {
    return (await this.perform("psql", "-h", join(this.dir, `s-${name}`), "-U", "wf", "-d", "postgres", "-At", "-c", text)).stdout;
  }

  async up(name) {
    const data = join(this.dir, name);
    await appendFile(join(data, "postgresql.auto.conf"), `\nlisten_addresses=''\nunix_socket_directories='${await this.socket(name)}'\n`);
    const child = spawn(join(this.bin, "postgres"), ["-D", data], {cwd: this.dir, env: {PATH: "/usr/bin:/bin", LC_ALL: "C"}, stdio: "ignore", ...this.user});
    child.ended = new Promise((done) => child.once("exit", done));
    this.alive.push(child);
    await until(`PostgreSQL answers: ${name}`, () => this.sql(name, "select 1").then(() => true, () => false));
    return child;
  }

  /** Ends the first as a failure of its machine does. */
  async lose() {
    this.first.kill("SIGQUIT");
    await this.first.ended;
  }

  /** Makes the second the one that takes writes. */
  promote() {
    return this.sql("second", "select pg_promote()");
  }

  async stop() {
    for (const c of this.alive) if (c.exitCode === null) c.kill("SIGQUIT");
    await Promise.all(this.alive.map((c) => c.ended));
    await rm(this.dir, {recursive: true, force: true, maxRetries: 5});
  }
}
