// The session of this tab: what the one-time code is exchanged for. It is kept as long as the tab,
// and sent as a token, never as a cookie: a cookie would go to every port of this machine.

const name = "wf-session";
let held: string | null = null; // also where storage is off, until the page is left

/** The token of the session, "" without one. */
export function session(): string {
  if (held !== null) return held;
  try {
    held = sessionStorage.getItem(name) ?? "";
  } catch {
    held = "";
  }
  return held;
}

/** Keeps a session; "" forgets it. */
export function keep(token: string): void {
  held = token;
  try {
    if (token) sessionStorage.setItem(name, token);
    else sessionStorage.removeItem(name);
  } catch {
    // storage is off
  }
}

/** The subprotocols of a WebSocket: a browser cannot set its headers. */
export function protocols(own: string): string[] {
  const token = session();
  return token ? [own, `wf.token.${token}`] : [own];
}
