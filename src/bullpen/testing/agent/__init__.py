"""A real program that stands in for a coding agent's CLI: `python -m bullpen.testing.agent --as claude`.

It is claude, codex, gemini or text, which is any other. It reads its prompt from stdin and plays a script in the stream
format of that CLI. The script is a JSON list of steps, or a file holding one, given by `--script` or in
BULLPEN_TEST_SCRIPT; without one it answers. Every other argument is ignored, so it can take the place of the real
command; `--version` is answered, and SIGINT and SIGTERM are taken, as the real one does.

A step is an object. One key names it; the others are its options. `true` says do it, `false` leaves it out.

The answer, told as each CLI tells it:

    {"answer": true}                                what happens without a script: a polite word about the last line
    {"say": "text", "chunk": 5, "delay": 0.01}      in pieces of so many characters, with seconds before each
    {"echo": true}, {"say_prompt_length": true}     the prompt, or its bytes; both also take chunk and delay
    {"think": "text"}
    {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "hi"}}
                                                    also "failed" or "denied": true, and "seconds" it takes
    {"todo": [{"text": "build", "completed": true}]}
    {"retry": 429, "message": "why", "of": 10}      an HTTP status, or a text: the connection failed
    {"usage": {"input": 1, "output": 2, "cached": 3, "reasoning": 0}, "cost": 0.01}
    {"unknown_event": {"type": "new"}}              a line nobody has seen before
    {"start": true}, {"finish": true}               the first and the final events now, not when they are due

The end; without one of these it is the final event and exit status 0:

    {"error": 429, "message": "why"}                as the CLI reports that HTTP status
    {"max_turns": true}
    {"no_result": true}                             exit status 0 without the final event
    {"exit": 3}, {"kill_self": "SIGSEGV"}

Misbehaviour, which does not open the stream: what is written is all that is written.

    {"read": false}                                 as the first step: leaves the prompt unread; {"read": true} reads it
    {"close_stdin": true}, {"close_stdout": true}
    {"sleep": 0.5}, {"hang": true}
    {"ignore": ["SIGINT", "SIGTERM"]}
    {"raw": "text"}, {"raw_base64": "/w=="}, {"half_line": "no line end"}, {"stderr": "text"}     exactly these bytes
    {"flood": 1000000, "line": 1000, "to": "stderr"}
    {"slow_write": 100, "chunk": 10, "delay": 0.1}
    {"write_file": {"path": "made.txt", "text": "hi"}}
    {"child": 60}, {"orphan": 60}                   a process that sleeps in our group, or in a session of its own;
                                                    "pid_file": where its id goes, "holds_output": true keeps our pipes
"""
