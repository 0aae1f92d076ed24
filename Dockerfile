# The environment and the code, to run the commands of the README in a container:
#     docker build -t attention . && docker run -it -v attention:/project attention
# The volume keeps what was built. The image holds the clone with its .git, because DVC needs it. With a GPU, add `--gpus all`.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc git libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /project
COPY . .
RUN git config --global --add safe.directory /project && make environment
ENV PATH=/project/.venv/bin:$PATH
CMD ["make", "reproduce"]
