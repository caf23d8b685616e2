"""A scripted program that replaces a coding agent's CLI: `python -m bullpen.testing.agent --as claude`.

It plays claude, codex, gemini or text, which is any other program. It reads its prompt from stdin and runs a script in
the stream format of that CLI. The script is a JSON list of steps, or a file with one, given by `--script` or in
BULLPEN_TEST_SCRIPT; without one it answers. With `--turns FOLDER` each turn has its own: see turns.py. Every other
argument is ignored, so it can replace the real command; `--version`, SIGINT and SIGTERM work as in the real one.

If CLAUDE_CONFIG_DIR or CODEX_HOME names that CLI's home, it keeps sessions there as the CLI does: it begins, resumes
and forks them, and refuses one that is not there. Beside each session's file another one, .asked, has a line for each
turn: what a model would have been asked, which is the whole session so far.

Words that claude is told while it works, it answers after its script.

A step is an object. One key names it; the others are its options. `true` runs it, `false` skips it.

The answer, in the format of each CLI:

    {"answer": true}                                the default without a script: a polite reply to the last line
    {"say": "text", "chunk": 5, "delay": 0.01}      in pieces of 5 characters, with 0.01 seconds before each
    {"echo": true}, {"say_prompt_length": true}     the prompt, or its bytes; both also accept chunk and delay
    {"think": "text"}
    {"ask": "touch a"}                              claude only: asks before a command, and says what the answer was
    {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "hi"}}
                                                    also "failed" or "denied": true, "seconds" it takes, and
                                                    "runs": what it does meanwhile, in a shell
    {"todo": [{"text": "build", "completed": true}]}
    {"retry": 429, "message": "why", "of": 10}      an HTTP status, or a text: the connection failed
    {"usage": {"input": 1, "output": 2, "cached": 3, "reasoning": 0}, "cost": 0.01}
    {"compact": "summary"}                          a session's history is replaced with a summary
    {"unknown_event": {"type": "new"}}              a line of an unknown type
    {"start": true}, {"finish": true}               the first and the final events now, not when they are due

The end; without one of these it is the final event and exit status 0:

    {"error": 429, "message": "why"}                as the CLI reports that HTTP status
    {"max_turns": true}
    {"no_result": true}                             exit status 0 without the final event
    {"exit": 3}, {"kill_self": "SIGSEGV"}

Misbehaviour, which does not open the stream: only these bytes are written.

    {"read": false}                                 as the first step: leaves the prompt unread; {"read": true} reads it
    {"close_stdin": true}, {"close_stdout": true}
    {"wait_for": "go"}                              until that file is there, in its folder
    {"sleep": 0.5}, {"hang": true}
    {"ignore": ["SIGINT", "SIGTERM"]}
    {"raw": "text"}, {"raw_base64": "/w=="}, {"half_line": "no line end"}, {"stderr": "text"}     exactly these bytes
    {"flood": 1000000, "line": 1000, "to": "stderr"}
    {"slow_write": 100, "chunk": 10, "delay": 0.1}
    {"write_file": {"path": "made.txt", "text": "hi"}}
    {"child": 60}, {"orphan": 60}                   a process that sleeps in our group, or in a session of its own;
                                                    "pid_file": where its id goes, "holds_output": true keeps our pipes
"""
