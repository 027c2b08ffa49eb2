// A headless Chromium, driven by its own protocol over two pipes: no package is needed for that.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Returns the name of an installed Chromium, if there is one. */
export function installedBrowser() {
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  return names.find((name) => spawnSync(name, ['--version']).status === 0);
}

/** A page in a browser of its own. */
export class Page {
  static async open(url, { width = 1440, height = 900, isDark = false } = {}) {
    const page = new Page();
    page.profile = mkdtempSync(join(tmpdir(), 'pg_bloom-page-'));
    const options = ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe'];
    page.browser = spawn(installedBrowser(), [...options, `--user-data-dir=${page.profile}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    page.answers = new Map();
    page.failures = [];
    page.listen();
    const { targetId } = await page.send('Target.createTarget', { url: 'about:blank' });
    const attached = await page.send('Target.attachToTarget', { targetId, flatten: true });
    page.session = attached.sessionId;
    await page.send('Runtime.enable');
    await page.send('Page.enable');
    const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 500 };
    await page.send('Emulation.setDeviceMetricsOverride', metrics);
    const scheme = { name: 'prefers-color-scheme', value: isDark ? 'dark' : 'light' };
    await page.send('Emulation.setEmulatedMedia', { features: [scheme] });
    await page.go(url);
    return page;
  }

  listen() {
    let received = '';
    this.browser.stdio[4].setEncoding('utf8').on('data', (text) => {
      const messages = (received + text).split('\0');
      received = messages.pop();
      for (const message of messages) this.take(JSON.parse(message));
    });
  }

  take({ id, method, params, result, error }) {
    if (method === 'Runtime.exceptionThrown') this.failures.push(params.exceptionDetails);
    if (method === 'Page.loadEventFired') this.loaded?.();
    const answer = this.answers.get(id);
    if (!answer) return;
    this.answers.delete(id);
    if (error) answer.reject(new Error(error.message));
    else answer.resolve(result);
  }

  /** Sends a command of the protocol, and returns its result. */
  send(method, params = {}) {
    this.lastId = (this.lastId ?? 0) + 1;
    const message = { id: this.lastId, method, params, sessionId: this.session };
    this.browser.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.answers.set(message.id, { resolve, reject }));
  }

  async go(url) {
    const loaded = new Promise((resolve) => {
      this.loaded = resolve;
    });
    await this.send('Page.navigate', { url });
    await loaded;
  }

  /** Returns the value of an expression in the page. */
  async value(expression) {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception.description);
    return result.value;
  }

  /** Returns the text of an element. */
  text(id) {
    return this.value(`document.getElementById(${JSON.stringify(id)}).textContent`);
  }

  /** Types into a field, by the keyboard. */
  async type(id, text) {
    await this.value(`(() => {
      const field = document.getElementById(${JSON.stringify(id)});
      field.focus();
      field.select();
    })()`);
    if (text === '') {
      for (const type of ['keyDown', 'keyUp']) {
        await this.send('Input.dispatchKeyEvent', { type, key: 'Delete', windowsVirtualKeyCode: 46 });
      }
    } else await this.send('Input.insertText', { text });
  }

  async press(key, windowsVirtualKeyCode, text) {
    for (const type of ['keyDown', 'keyUp']) {
      await this.send('Input.dispatchKeyEvent', { type, key, windowsVirtualKeyCode, text });
    }
  }

  async picture() {
    const { data } = await this.send('Page.captureScreenshot', { captureBeyondViewport: true });
    return Buffer.from(data, 'base64');
  }

  async close() {
    const ended = new Promise((resolve) => this.browser.once('exit', resolve));
    this.send('Browser.close').catch(() => {});
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }
}
