// Programs as the tests run them: arguments as a list, output kept, failures with their words.
import { spawnSync } from 'node:child_process';

/** Runs a program and answers {status, signal, stdout, stderr}; never throws for what the program does. */
export function attempt(program, args, options = {}) {
  const result = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.error && result.error.code !== 'ETIMEDOUT') throw result.error;
  return result;
}

/** Runs a program that has to succeed; answers its standard output. */
export function run(program, args, options = {}) {
  const { status, signal, stdout, stderr } = attempt(program, args, options);
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')}\n  ${signal ?? `exit ${status}`}: ${String(stderr || stdout || '').trim()}`);
  return stdout;
}

/** Runs named checks in order, prints one line each, and sets the exit status. */
export async function runChecks(checks) {
  let failures = 0;
  for (const [name, check] of checks) {
    try {
      const note = await check();
      console.log(`ok      ${name}${note ? `: ${note}` : ''}`);
    } catch (error) {
      ++failures;
      console.log(`FAILED  ${name}: ${error.message}`);
    }
  }
  console.log(`${checks.length - failures} of ${checks.length} checks passed`);
  if (failures || checks.length === 0) process.exitCode = 1;
}

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}
